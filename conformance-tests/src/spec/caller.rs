//! An actor that makes the calls of operations on a queue, and records the replies.

use std::{collections::BTreeMap, num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, Queue, Receipt,
    Settlement, WorkerId,
    batch::{Added, BatchQueue, Change},
    environment::Timestamp,
    operator::{InspectQueue, PeekRequest, RestoreQueue, Selection, WorkerReport},
    outcome::Pushed,
    results::ResultQueue,
    schedule::{ScheduleQueue, Tick, Ticked},
};

use super::{
    class::Class,
    draft,
    operation::{Act, BatchWord, DraftSettlement, Operation, TickTime, Who},
    recorded::{Reply, WORKERS, returned},
    reference::Reference,
    restoring::{Restored, after},
};

/// The most jobs or batches that a call lists: more than any scene has.
const PAGE: u8 = 100;

/// The pushes so far, for actors that name their jobs or repeat them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pushes {
    /// The id of each job of the successful pushes, in the order of the pushes. `None`
    /// for a job that was a duplicate.
    pub(crate) ids: Vec<Option<JobId>>,
    /// The calls with a token, by its number.
    calls: BTreeMap<u8, Vec<NewJob>>,
}

impl Pushes {
    /// Keeps the ids of the jobs that a push or a tick stored.
    pub(crate) fn remember(&mut self, replies: &[Reply]) {
        let id = |one: &Pushed| match one {
            Pushed::Stored(id) => Some(id.clone()),
            Pushed::Duplicate { .. } => None,
        };
        for reply in replies {
            if let Reply::Pushed(Ok(pushed)) | Reply::Added(Ok(Added::Stored(pushed))) =
                reply
            {
                self.ids.extend(pushed.iter().map(id));
            }
            if let Reply::Ticked(Ok(Ticked::Pushed(pushed))) = reply {
                self.ids.push(id(pushed));
            }
        }
    }
}

pub(crate) struct Caller {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) class: Class,
    worker: WorkerId,
    /// The actor, if it is one of a scene. It may release the worker of another.
    who: Option<Who>,
    /// The receipts of all its claims, the newest last.
    pub(crate) receipts: Vec<Receipt>,
    /// When the scene began, by the store's clock. The ticks of schedules count from it.
    pub(crate) scene_began: Timestamp,
}

impl Caller {
    /// The actor `who` of a scene.
    pub(crate) fn new(who: Who, queue: Arc<dyn Queue>) -> Self {
        Self { who: Some(who), ..Self::of_worker(worker_of(who), queue) }
    }

    /// An actor that claims under that worker id.
    pub(crate) fn of_worker(worker: WorkerId, queue: Arc<dyn Queue>) -> Self {
        let class = Class::of(queue.capabilities());
        let scene_began = Timestamp::from_unix_ms(0);
        Self { queue, class, worker, who: None, receipts: Vec::new(), scene_began }
    }

    /// Makes the calls of an operation. `payloads` jobs come before its own.
    pub(crate) async fn act(
        &mut self,
        Operation { who, act, .. }: &Operation,
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
                pushes.calls.insert(*token, draft::call(jobs));
                self.push(*token, pushes).await
            }
            Act::Add { batch, jobs, token } => {
                let pieces: Vec<_> = (payloads + 1..)
                    .zip(jobs)
                    .map(|(at, it)| draft::piece(it, format!("job {at}"), &self.class))
                    .collect();
                let token = token_of(*token);
                let id = Reference::batch_id(*batch);
                let added = batches(&*queue).add(&id, &pieces, token.as_ref());
                Reply::Added(returned(added.await))
            }
            Act::CreateBatch { batch, options } => {
                let last = NewJob::new(format!("complete {}", payloads + 1));
                let new = draft::new_batch(*batch, *options, last);
                Reply::Created(returned(batches(&*queue).create(&new).await))
            }
            Act::Batch { batch, word } => self.batch(*batch, *word).await,
            Act::Repeat { token } => self.push(*token, pushes).await,
            Act::Claim { max, lease, wait } => {
                let ask = self.ask(*max, *lease).wait(draft::wait(*wait));
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
                let extended = queue.extend(&self.worker, &held, lease).await;
                Reply::Extended(returned(extended))
            }
            Act::ReleaseWorker => {
                let another =
                    self.who.filter(|own| own != who).map(|_| worker_of(*who));
                let worker = another.as_ref().unwrap_or(&self.worker);
                let released = queue.release_worker(worker).await;
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
            Act::Peek(state) => {
                let ask = PeekRequest::new(*state, count(PAGE));
                Reply::Peeked(returned(queue.peek(&ask).await))
            }
            Act::Restore { jobs } => {
                let restored = jobs.iter().zip(payloads + 1..).map(|(one, at)| {
                    let job = Restored::new(one, format!("job {at}"), &self.class, 0);
                    job.view(|since| after(self.scene_began, since))
                });
                let restored: Vec<_> = restored.collect();
                Reply::Pushed(returned(restorer(&*queue).restore(&restored).await))
            }
            Act::RunNow { .. }
            | Act::Show { .. }
            | Act::ReportWorker
            | Act::Workers
            | Act::Newest(_) => match self.inspect(*who, act, pushes).await {
                Some(reply) => reply,
                None => return Vec::new(),
            },
            Act::Stats => Reply::Stats(returned(queue.stats().await)),
            Act::Audit => Reply::Audit(returned(queue.audit().await)),
            Act::ListBatches => {
                let listed = batches(&*queue).list_batches(None, count(PAGE)).await;
                Reply::Listed(returned(listed))
            }
            Act::PutSchedule { .. }
            | Act::RemoveSchedule { .. }
            | Act::Tick { .. }
            | Act::ListSchedules => self.schedule(act, payloads).await,
            Act::Report { receipt, value } => match self.receipt(*receipt) {
                Some(receipt) => {
                    let progress = draft::value(*value);
                    let reported =
                        results(&*queue).report_progress(&receipt, &progress);
                    Reply::Reported(returned(reported.await))
                }
                None => return Vec::new(),
            },
            Act::Result { job } => match recent(pushes, *job) {
                Some(id) => {
                    Reply::Results(returned(results(&*queue).read_results(&[id]).await))
                }
                None => return Vec::new(),
            },
            other => panic!("no actor makes the call `{other}`"),
        }]
    }

    /// Makes a claim that waits for `wait` and finds no job. It opens the connections on
    /// which the claims of this actor wait.
    pub(crate) async fn wait_for_nothing(&self, wait: Duration) -> Result<(), Error> {
        self.queue.claim(&self.ask(1, 0).wait(wait)).await.map(drop)
    }

    async fn push(&self, token: u8, pushes: &Pushes) -> Reply {
        let jobs = pushes.calls.get(&token).expect("a scene repeats what it pushed");
        let token = token_of(token);
        Reply::Pushed(returned(self.queue.push(jobs, token.as_ref()).await))
    }

    async fn batch(&self, number: u8, word: BatchWord) -> Reply {
        let (batches, id) = (batches(&*self.queue), Reference::batch_id(number));
        Reply::Status(returned(match word {
            BatchWord::Read => batches.batch(&id).await,
            BatchWord::Wait => batches.wait_batch(&id, Duration::ZERO).await,
            BatchWord::Seal => batches.seal(&id).await,
            BatchWord::Cancel => batches.cancel_batch(&id).await,
            BatchWord::Alter(options) => {
                let (priority, limit) = draft::batch(options);
                let change = Change::default().priority(priority).limit(limit);
                batches.alter(&id, &change).await
            }
        }))
    }

    /// Makes a call that finds jobs or workers. `None` if the job that it names was not
    /// stored.
    async fn inspect(&self, who: Who, act: &Act, pushes: &Pushes) -> Option<Reply> {
        let inspector = inspector(&*self.queue);
        Some(match act {
            Act::RunNow { job } => {
                Reply::Ran(returned(inspector.run_now(&recent(pushes, *job)?).await))
            }
            Act::Show { job } => {
                Reply::Found(returned(inspector.job(&recent(pushes, *job)?).await))
            }
            Act::ReportWorker => {
                let another =
                    self.who.filter(|own| *own != who).map(|_| worker_of(who));
                let worker = another.unwrap_or_else(|| self.worker.clone());
                let report = WorkerReport::new(worker, NonZeroU32::MIN);
                Reply::WorkerReported(returned(self.queue.report_worker(&report).await))
            }
            Act::Workers => {
                Reply::Workers(returned(inspector.workers(None, count(PAGE)).await))
            }
            Act::Newest(state) => {
                let ask = PeekRequest::new(*state, count(PAGE)).newest_first();
                Reply::Peeked(returned(self.queue.peek(&ask).await))
            }
            other => panic!("`{other}` finds no jobs"),
        })
    }

    /// Makes a call on schedules.
    async fn schedule(&self, act: &Act, payloads: usize) -> Reply {
        let scheduler = scheduler(&*self.queue);
        match act {
            Act::PutSchedule { schedule, definition } => {
                let name = draft::schedule(*schedule);
                let text = draft::definition(*definition);
                Reply::ScheduleStored(returned(
                    scheduler.put_schedule(&name, &text).await,
                ))
            }
            Act::RemoveSchedule { schedule } => {
                let name = draft::schedule(*schedule);
                Reply::ScheduleRemoved(returned(scheduler.remove_schedule(&name).await))
            }
            Act::Tick { schedule, definition, at: TickTime::Since(seconds), job } => {
                let at = Duration::from_secs(u64::from(*seconds));
                let tick = Tick {
                    name: draft::schedule(*schedule),
                    definition: draft::definition(*definition),
                    at: self.scene_began.plus(at),
                };
                let payload = format!("job {}", payloads + 1);
                let job = draft::ticked(job, payload, &self.class);
                Reply::Ticked(returned(scheduler.push_tick(&tick, job).await))
            }
            Act::ListSchedules => {
                Reply::Schedules(returned(scheduler.schedules().await))
            }
            other => panic!("no actor of a scene makes the call `{other}`"),
        }
    }

    fn hold(&mut self, deliveries: &[Delivery]) {
        self.receipts.extend(deliveries.iter().map(|one| one.receipt.clone()));
    }

    fn ask(&self, max: u8, lease: u8) -> ClaimRequest {
        let lease = draft::lease(lease, &self.class);
        ClaimRequest::new(self.worker.clone(), lease).max(count(max))
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

fn token_of(number: u8) -> Option<PushToken> {
    let name = format!("token-{number}-0");
    (number > 0).then(|| PushToken::new(name).expect("a valid token"))
}

fn batches(queue: &dyn Queue) -> &dyn BatchQueue {
    queue.batch_queue().expect("only a backend with batches gets calls on them")
}

fn scheduler(queue: &dyn Queue) -> &dyn ScheduleQueue {
    queue.schedule_queue().expect("only a backend with schedules gets calls on them")
}

fn results(queue: &dyn Queue) -> &dyn ResultQueue {
    queue.result_queue().expect("only a backend with results gets calls on them")
}

fn inspector(queue: &dyn Queue) -> &dyn InspectQueue {
    queue.inspect_queue().expect("only a backend that finds jobs gets these calls")
}

fn restorer(queue: &dyn Queue) -> &dyn RestoreQueue {
    queue.restore_queue().expect("only a backend that restores jobs gets this call")
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
