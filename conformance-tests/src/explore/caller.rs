//! One actor of a scene: it makes the calls of its program and records the replies.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc};

use relq_core::{
    ClaimRequest, Delivery, JobId, NewJob, PushToken, Queue, Receipt, Settlement,
    WorkerId, operator::Selection,
};

use crate::spec::{
    class::Class,
    draft,
    operation::{Act, DraftSettlement, Operation, Who},
    tape::{Reply, WORKERS, returned},
};

/// The pushes of a scene, for actors that name their jobs or repeat them.
#[derive(Debug, Default, Clone)]
pub(super) struct Pushes {
    /// The jobs that the setup stored, in the order of their pushes. A job that was a
    /// duplicate has no id.
    pub(super) ids: Vec<Option<JobId>>,
    /// The calls with a token, by its number.
    calls: BTreeMap<u8, Vec<NewJob>>,
}

pub(super) struct Caller {
    pub(super) queue: Arc<dyn Queue>,
    pub(super) class: Class,
    who: Who,
    receipts: Vec<Receipt>,
}

impl Caller {
    pub(super) fn new(who: Who, queue: Arc<dyn Queue>) -> Self {
        let class = Class::of(queue.capabilities());
        Self { queue, class, who, receipts: Vec::new() }
    }

    /// Makes the calls of an operation. `payloads` jobs come before its own.
    pub(super) async fn act(
        &mut self,
        Operation { act, .. }: &Operation,
        payloads: usize,
        pushes: &mut Pushes,
    ) -> Vec<Reply> {
        let queue = Arc::clone(&self.queue);
        vec![match act {
            Act::Push { jobs, token } => {
                let jobs: Vec<_> = (payloads + 1..)
                    .zip(jobs)
                    .map(|(at, one)| draft::job(one, format!("job {at}"), &self.class))
                    .collect();
                pushes.calls.insert(*token, jobs);
                self.push(*token, pushes).await
            }
            Act::Repeat { token } => self.push(*token, pushes).await,
            Act::Claim { max, lease } => {
                let ask = self.ask(*max, *lease);
                let claimed = queue.claim(&ask).await;
                self.hold(claimed.as_deref().unwrap_or_default());
                Reply::Claimed(returned(claimed))
            }
            Act::Settle(words) => {
                let settlements = self.settlements(words);
                if settlements.is_empty() {
                    return Vec::new();
                }
                Reply::Settled(returned(queue.settle(&settlements).await))
            }
            Act::SettleAndClaim { words, max, lease } => {
                let ask = self.ask(*max, *lease);
                let both = queue.settle_and_claim(&self.settlements(words), &ask).await;
                self.hold(both.claimed.as_deref().unwrap_or_default());
                let settled = Reply::Settled(returned(both.settled));
                return vec![settled, Reply::Claimed(returned(both.claimed))];
            }
            Act::Extend { receipts, lease } => {
                let held: Vec<_> =
                    receipts.iter().filter_map(|back| self.receipt(*back)).collect();
                let lease = draft::lease(*lease, &self.class);
                let worker = worker_of(self.who);
                Reply::Extended(returned(queue.extend(&worker, &held, lease).await))
            }
            Act::ReleaseWorker => {
                let released = queue.release_worker(&worker_of(self.who)).await;
                Reply::Released(returned(released))
            }
            Act::Recover { page } => {
                Reply::Recovered(returned(queue.recover(count(*page)).await))
            }
            Act::Cancel { job } => match recent(pushes, *job) {
                Some(id) => Reply::Cancelled(returned(queue.cancel(&id).await)),
                None => return Vec::new(),
            },
            Act::Pause => Reply::Steered(returned(queue.pause().await)),
            Act::Resume => Reply::Steered(returned(queue.resume().await)),
            Act::Redrive => {
                Reply::Redriven(returned(queue.redrive(&Selection::All).await))
            }
            Act::RedriveOne { job } => match recent(pushes, *job) {
                Some(id) => {
                    let which = Selection::Only(vec![id]);
                    Reply::Redriven(returned(queue.redrive(&which).await))
                }
                None => return Vec::new(),
            },
            Act::PurgeDead => {
                Reply::Removed(returned(queue.purge_dead(&Selection::All).await))
            }
            Act::Purge => Reply::Removed(returned(queue.purge().await)),
            Act::Stats => Reply::Stats(returned(queue.stats().await)),
            other => panic!("no scene has `{other}`"),
        }]
    }

    async fn push(&self, token: u8, pushes: &Pushes) -> Reply {
        let jobs = pushes.calls.get(&token).expect("a scene repeats what it pushed");
        let name = PushToken::new(format!("token-{token}-0")).expect("a valid token");
        let token = Some(&name).filter(|_| token > 0);
        Reply::Pushed(returned(self.queue.push(jobs, token).await))
    }

    fn hold(&mut self, deliveries: &[Delivery]) {
        self.receipts.extend(deliveries.iter().map(|one| one.receipt.clone()));
    }

    fn ask(&self, max: u8, lease: u8) -> ClaimRequest {
        let lease = draft::lease(lease, &self.class);
        ClaimRequest::new(worker_of(self.who), lease).max(count(max))
    }

    /// A receipt, by its distance from the newest.
    fn receipt(&self, back: u8) -> Option<Receipt> {
        self.receipts.iter().rev().nth(usize::from(back)).cloned()
    }

    fn settlements(&self, words: &[DraftSettlement]) -> Vec<Settlement> {
        let settlement = |word: &DraftSettlement| {
            let (disposition, _) = draft::disposition(word.disposition);
            Some(Settlement::new(self.receipt(word.receipt)?, disposition))
        };
        words.iter().filter_map(settlement).collect()
    }
}

fn recent(pushes: &Pushes, back: u8) -> Option<JobId> {
    let at = pushes.ids.len().checked_sub(usize::from(back) + 1)?;
    pushes.ids[at].clone()
}

fn worker_of(who: Who) -> WorkerId {
    let number = WORKERS.iter().find(|(known, _)| *known == who).map_or(0, |it| it.1);
    WorkerId::new(format!("worker-{number}")).expect("a valid id")
}

fn count(number: u8) -> NonZeroU32 {
    NonZeroU32::new(u32::from(number.max(1))).expect("not zero")
}
