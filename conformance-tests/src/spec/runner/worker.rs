//! The operations of workers and of the reaper in a running sequence.

use std::num::NonZeroU32;

use relq_core::{
    ClaimRequest, Delivery, Error, Receipt, Settlement, WorkerId, outcome::Extended,
};

use super::super::{
    actors::{Ended, Observed},
    claiming::Asked,
    draft,
    operation::{DraftSettlement, InjectedFault, Who},
    pushing::ms,
    reference::CheckResult,
    runner::{CallEffect, Runner},
    settling::SentSettlement,
};

impl Runner {
    pub(in crate::spec) async fn claim(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (max, lease, wait): (u8, u8, u8),
    ) -> CheckResult {
        let (mut asked, ask) = self.ask(who, max, lease);
        asked.waits = wait > 0;
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.claim(&ask).await }))
            .await?;
        self.bury_the_dead(who, &ended);
        self.heard_of_claim(who, asked, ended)
    }

    fn heard_of_claim(
        &mut self,
        who: Who,
        asked: Asked,
        ended: Ended<Result<Vec<Delivery>, Error>>,
    ) -> CheckResult {
        let has_fault = ended.has_fault();
        match ended.observed_answer()? {
            Observed::Answer(deliveries) => {
                let first = self.reference.observed.len();
                if has_fault {
                    self.reference.claimed_despite_fault(asked, &deliveries)?;
                } else {
                    self.reference.claimed(asked, &deliveries)?;
                }
                let new = first..self.reference.observed.len();
                self.observed.entry(who).or_default().extend(new);
                Ok(())
            }
            other => self.unanswered(&other, &CallEffect::Claim(asked)),
        }
    }

    pub(in crate::spec) async fn settle(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        words: &[DraftSettlement],
    ) -> CheckResult {
        let (sent, settlements) = self.settlements(who, words);
        if sent.is_empty() {
            return Ok(());
        }
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.settle(&settlements).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.observed_answer()? {
            Observed::Answer(answers) => self.reference.settled(&sent, &answers),
            other => self.unanswered(&other, &CallEffect::Settle(sent)),
        }
    }

    pub(in crate::spec) async fn settle_and_claim(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        words: &[DraftSettlement],
        (max, lease): (u8, u8),
    ) -> CheckResult {
        let (sent, settlements) = self.settlements(who, words);
        let (asked, ask) = self.ask(who, max, lease);
        let mut ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(
                    async move { queue.settle_and_claim(&settlements, &ask).await },
                )
            })
            .await?;
        self.bury_the_dead(who, &ended);
        let (settled, claimed) = match ended.answer.take() {
            Some(both) => (Some(both.settled), Some(both.claimed)),
            None => (None, None),
        };
        let settled = ended.part(settled);
        match settled.observed_answer()? {
            Observed::Answer(answers) => self.reference.settled(&sent, &answers)?,
            other => self.unanswered(&other, &CallEffect::Settle(sent))?,
        }
        self.reference.conclude()?;
        let claimed = ended.part(claimed);
        self.heard_of_claim(who, asked, claimed)
    }

    pub(in crate::spec) async fn extend(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        receipts: &[u8],
        lease: u8,
    ) -> CheckResult {
        let (run, worker) = self.worker(who);
        let named = self.named(who, run, receipts);
        let lease = draft::lease(lease, &self.reference.class);
        let until = self.reference.now + ms(lease);
        let held: Vec<_> =
            named.iter().map(|observed| self.receipt(*observed)).collect();
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.extend(&worker, &held, lease).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.observed_answer()? {
            Observed::Answer(answers) => {
                let end = |answer: &Extended| match answer {
                    Extended::Until(at) => Some(self.actors.since_start(*at)),
                    _ => None,
                };
                let answers: Vec<_> =
                    answers.iter().map(|answer| (*answer, end(answer))).collect();
                self.reference.extended(run, &named, until, &answers)
            }
            other => {
                self.unanswered(&other, &CallEffect::Extend(run, named, ms(lease)))
            }
        }
    }

    /// The receipts that a heartbeat names, given their distances from the newest.
    fn named(&self, who: Who, run: usize, receipts: &[u8]) -> Vec<usize> {
        let mut named: Vec<_> =
            receipts.iter().filter_map(|one| self.observed_by(who, *one)).collect();
        named.sort_unstable();
        named.dedup();
        if self.reference.class.shares_heartbeat() {
            // A heartbeat names only jobs that this run of the worker claimed. It names
            // no job that an earlier run claimed before the worker died.
            named
                .retain(|observed| self.reference.observed[*observed].lease.run == run);
        }
        named
    }

    pub(in crate::spec) async fn release_worker(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let (run, worker) = self.worker(who);
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.release_worker(&worker).await })
            })
            .await?;
        // A released worker does not continue, whether or not the release succeeded.
        self.runs.remove(&who);
        match ended.observed_answer()? {
            Observed::Answer(released) => self.reference.left(run, released.jobs),
            other => self.unanswered(&other, &CallEffect::ReleaseWorker(run)),
        }
    }

    pub(in crate::spec) async fn recover(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        page: u8,
    ) -> CheckResult {
        let size = NonZeroU32::new(u32::from(page.max(1))).expect("not zero");
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.recover(size).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.observed_answer()? {
            Observed::Answer(answer) => {
                self.reference.recovered(u64::from(size.get()), &answer)
            }
            other => self.unanswered(&other, &CallEffect::Recover),
        }
    }

    fn ask(&mut self, who: Who, max: u8, lease: u8) -> (Asked, ClaimRequest) {
        let (run, worker) = self.worker(who);
        let lease = draft::lease(lease, &self.reference.class);
        let max = NonZeroU32::new(u32::from(max.max(1))).expect("not zero");
        let ask = ClaimRequest::new(worker, lease).max(max);
        let max = max.get() as usize;
        (Asked { run, max, lease: ms(lease), waits: false }, ask)
    }

    pub(in crate::spec) fn worker(&mut self, who: Who) -> (usize, WorkerId) {
        let next = self.run + 1;
        let run = *self.runs.entry(who).or_insert(next);
        self.run = self.run.max(run);
        (run, WorkerId::new(format!("worker-{run}")).expect("a valid id"))
    }

    /// Ends the run of a worker that died. Its next call begins a new run with a new
    /// id.
    pub(super) fn bury_the_dead<T>(&mut self, who: Who, ended: &Ended<T>) {
        if ended.is_dead() {
            self.runs.remove(&who);
        }
    }

    fn settlements(
        &self,
        who: Who,
        words: &[DraftSettlement],
    ) -> (Vec<SentSettlement>, Vec<Settlement>) {
        let (mut sent, mut settlements) = (Vec::<SentSettlement>::new(), Vec::new());
        for word in words {
            let Some(observed) = self.observed_by(who, word.receipt) else { continue };
            if sent.iter().any(|other| other.observed == observed) {
                continue;
            }
            let (disposition, after) = draft::disposition(word.disposition);
            sent.push(SentSettlement {
                observed,
                disposition: word.disposition,
                after: ms(after),
            });
            settlements.push(Settlement::new(self.receipt(observed), disposition));
        }
        (sent, settlements)
    }

    /// The index of one of a worker's receipts, given its distance from the newest.
    /// `None` if the worker has no such receipt.
    pub(super) fn observed_by(&self, who: Who, back: u8) -> Option<usize> {
        let observed = self.observed.get(&who)?;
        observed.iter().rev().nth(usize::from(back)).copied()
    }

    pub(super) fn receipt(&self, observed: usize) -> Receipt {
        self.reference.observed[observed].receipt.clone()
    }
}
