//! Makes each call of the queue traits once. Each call has a name for failure messages.

use std::{future::Future, num::NonZeroU32, pin::Pin, time::Duration};

use relq_core::{
    Delivery, Disposition, Error, JobId, NewJob, PushToken, Settlement,
    batch::{BatchId, BatchQueue, Change, NewBatch},
    capabilities::Capability,
    error::Operation,
    operator::{
        InspectQueue, JobState, JobView, PeekRequest, RestoreQueue, Selection,
        StateDetail, WorkerReport,
    },
    results::ResultQueue,
    schedule::{ScheduleName, ScheduleQueue, Tick},
};

use super::{actor::Actor, checks::dead, times::HELD};

/// The future of one call, which runs only when it is polled.
pub(crate) type Call<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// The jobs, the batch and the tick that the [`calls`] are made for.
#[derive(Clone)]
pub(crate) struct Known {
    held: Delivery,
    /// A job without options, which a backend may end and claim the next in one command.
    plain: Delivery,
    ready: JobId,
    /// A scheduled job. A ready one for a backend without delays.
    scheduled: JobId,
    batch: BatchId,
    tick: Option<Tick>,
}

impl Known {
    /// Stores what the calls need: two leased jobs, a dead, a ready and a scheduled one, an
    /// open batch with one piece, and a schedule. `actor` holds the leases. Leaves out what
    /// the backend does not have.
    pub(crate) async fn prepare(actor: &Actor) -> Self {
        let held = NewJob::new("held");
        let held = actor.class().fit(held.keep_result(HELD));
        actor.store([held, "plain".into(), "buried".into()]).await;
        let taken = actor.take(3).await.try_into();
        let [held, plain, buried]: [Delivery; 3] = taken.expect("three jobs");
        actor.say(&buried, dead("the suite says so")).await;
        let ready = actor.store_one("ready").await;
        let scheduled = actor.class().fit(NewJob::new("scheduled").delay(2 * HELD));
        let scheduled = actor.store_one(scheduled).await;
        let batch = BatchId::new("open").expect("a valid id");
        if let Some(batches) = actor.batch_queue() {
            batches.create(&NewBatch::new(batch.clone())).await.expect("answered");
            batches.add(&batch, &["piece".into()], None).await.expect("answered");
        }
        let tick = match actor.schedule_queue() {
            Some(scheduler) => Some(next_tick(scheduler).await),
            None => None,
        };
        Self { held, plain, ready, scheduled, batch, tick }
    }

    fn done(&self) -> [Settlement; 1] {
        [Settlement::new(self.held.receipt.clone(), Disposition::Done)]
    }

    fn plain_done(&self) -> [Settlement; 1] {
        [Settlement::new(self.plain.receipt.clone(), Disposition::Done)]
    }
}

/// Stores a schedule, and returns its next tick, which is due in a millisecond.
async fn next_tick(scheduler: &dyn ScheduleQueue) -> Tick {
    let name = ScheduleName::new("known").expect("a valid name");
    scheduler.remove_schedule(&name).await.expect("answered");
    scheduler.put_schedule(&name, b"definition").await.expect("answered");
    let found = scheduler.schedules().await.expect("answered");
    let stored = found.schedules.iter().find(|schedule| schedule.name == name);
    let stored = stored.expect("it was stored");
    Tick::of(stored, stored.last_tick.plus(Duration::from_millis(1)))
}

/// Returns one future for each call of the queue traits, with the name of the call. The
/// claims return at once if no job is ready. `settle_and_claim` counts as failed only
/// if both of its parts fail.
pub(crate) fn calls<'a>(
    actor: &'a Actor,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    let mut calls = of_workers(actor, known);
    calls.extend(of_operators(actor, known));
    if let Some(inspector) = actor.inspect_queue() {
        calls.extend(of_inspectors(inspector, known));
        let report = WorkerReport::new(actor.worker().clone(), NonZeroU32::MIN);
        let reporting = async move { actor.report_worker(&report).await };
        calls.push(("report_worker", call(reporting)));
        calls.push(("peek of the newest jobs", peek_newest(actor)));
    }
    if let Some(restorer) = actor.restore_queue() {
        calls.push(("restore", restore(restorer)));
    }
    if let Some(batches) = actor.batch_queue() {
        calls.extend(of_batches(batches, &known.batch));
    }
    if let Some(results) = actor.result_queue() {
        calls.extend(of_results(results, known));
    }
    if let (Some(scheduler), Some(tick)) = (actor.schedule_queue(), &known.tick) {
        calls.extend(of_schedulers(scheduler, tick));
    }
    calls
}

/// The calls of [`calls`] that only read: they change nothing in the store.
pub(crate) fn reads<'a>(
    actor: &'a Actor,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    calls(actor, known).into_iter().filter(|(name, _)| only_reads(name)).collect()
}

/// The calls of [`calls`] that change the store.
pub(crate) fn writes<'a>(
    actor: &'a Actor,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    calls(actor, known).into_iter().filter(|(name, _)| !only_reads(name)).collect()
}

fn only_reads(name: &str) -> bool {
    operation_of(name).only_reads()
}

/// The operation that an error of the call with this name has. `settle_and_claim` returns
/// the error of its claim.
pub(crate) fn operation_of(name: &str) -> Operation {
    match name {
        "push" | "push of an option" | "push with a token" => Operation::Push,
        "claim" | "settle_and_claim" | "plain settle_and_claim" => Operation::Claim,
        "settle" => Operation::Settle,
        "extend" => Operation::Extend,
        "release_worker" => Operation::ReleaseWorker,
        "report_worker" => Operation::ReportWorker,
        "recover" => Operation::Recover,
        "open_another" => Operation::Connect,
        "stats" => Operation::Stats,
        "redrive" => Operation::Redrive,
        "purge_dead" | "purge" => Operation::Purge,
        "cancel" => Operation::Cancel,
        "pause" => Operation::Pause,
        "resume" => Operation::Resume,
        "audit" => Operation::Audit,
        "job" => Operation::ReadJob,
        "run_now" => Operation::RunNow,
        "workers" => Operation::ReadWorkers,
        "restore" => Operation::Restore,
        "create" => Operation::CreateBatch,
        "add" => Operation::AddPieces,
        "alter" => Operation::AlterBatch,
        "batch" | "list_batches" => Operation::ReadBatch,
        "wait_batch" => Operation::WaitBatch,
        "seal" => Operation::SealBatch,
        "cancel_batch" => Operation::CancelBatch,
        "report_progress" => Operation::ReportProgress,
        "read_results" => Operation::ReadResults,
        "wait_result" => Operation::WaitResult,
        "push_tick" => Operation::PushTick,
        "schedules" => Operation::ReadSchedules,
        "put_schedule" => Operation::PutSchedule,
        "remove_schedule" => Operation::RemoveSchedule,
        peek if peek.starts_with("peek") => Operation::Peek,
        other => panic!("the call {other} has no operation"),
    }
}

fn call<'a, T>(answer: impl Future<Output = Result<T, Error>> + Send + 'a) -> Call<'a> {
    Box::pin(async move { answer.await.map(drop) })
}

fn settle_and_claim(actor: &Actor, done: [Settlement; 1]) -> Call<'_> {
    call(async move {
        let answer = actor.settle_and_claim(&done, &actor.ask(1)).await;
        answer.settled.map(drop).or(answer.claimed.map(drop))
    })
}

fn of_workers<'a>(actor: &'a Actor, known: &'a Known) -> Vec<(&'static str, Call<'a>)> {
    let push = |job: NewJob| call(async move { actor.push(&[job], None).await });
    let late = NewJob::new("late").delay(HELD);
    let has_tokens = actor.capabilities().supports(Capability::PushTokens);
    let token = has_tokens.then(|| PushToken::new("known").expect("a valid token"));
    vec![
        ("push", push("plain".into())),
        ("push of an option", push(actor.class().fit(late))),
        (
            "push with a token",
            call(async move { actor.push(&["named".into()], token.as_ref()).await }),
        ),
        ("claim", call(async move { actor.claim(&actor.ask(1)).await })),
        ("settle", call(async move { actor.settle(&known.done()).await })),
        ("settle_and_claim", settle_and_claim(actor, known.done())),
        ("plain settle_and_claim", settle_and_claim(actor, known.plain_done())),
        (
            "extend",
            call(async move {
                let held = [known.held.receipt.clone()];
                actor.extend(actor.worker(), &held, HELD).await
            }),
        ),
        ("release_worker", call(actor.release_worker(actor.worker()))),
        ("recover", call(actor.recover(NonZeroU32::MIN))),
        ("open_another", call(actor.open_another())),
    ]
}

fn of_operators<'a>(
    actor: &'a Actor,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    let peek = |state| {
        let page = PeekRequest::new(state, NonZeroU32::MIN);
        call(async move { actor.peek(&page).await })
    };
    vec![
        ("stats", call(actor.stats())),
        ("peek of scheduled jobs", peek(JobState::Scheduled)),
        ("peek of ready jobs", peek(JobState::Ready)),
        ("peek of leased jobs", peek(JobState::Leased)),
        ("peek of dead jobs", peek(JobState::Dead)),
        ("redrive", call(actor.redrive(&Selection::All))),
        ("purge_dead", call(actor.purge_dead(&Selection::All))),
        ("cancel", call(actor.cancel(&known.ready))),
        ("pause", call(actor.pause())),
        ("resume", call(actor.resume())),
        ("audit", call(actor.audit())),
        ("purge", call(actor.purge())),
    ]
}

fn of_inspectors<'a>(
    inspector: &'a dyn InspectQueue,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    vec![
        ("job", call(inspector.job(&known.ready))),
        ("run_now", call(inspector.run_now(&known.scheduled))),
        ("workers", call(inspector.workers(None, NonZeroU32::MIN))),
    ]
}

fn peek_newest(actor: &Actor) -> Call<'_> {
    let page = PeekRequest::new(JobState::Ready, NonZeroU32::MIN).newest_first();
    call(async move { actor.peek(&page).await })
}

fn restore(restorer: &dyn RestoreQueue) -> Call<'_> {
    let id = JobId::new("restored").expect("a valid id");
    let jobs = [JobView::new(Some(id), "restored", StateDetail::Ready)];
    call(async move { restorer.restore(&jobs).await })
}

fn of_batches<'a>(
    batches: &'a dyn BatchQueue,
    open: &'a BatchId,
) -> Vec<(&'static str, Call<'a>)> {
    let new = NewBatch::new(BatchId::new("new").expect("a valid id"));
    vec![
        ("create", call(async move { batches.create(&new).await })),
        ("add", call(async move { batches.add(open, &["piece".into()], None).await })),
        ("alter", call(async move { batches.alter(open, &Change::default()).await })),
        ("batch", call(batches.batch(open))),
        ("list_batches", call(batches.list_batches(None, NonZeroU32::MIN))),
        ("wait_batch", call(batches.wait_batch(open, Duration::ZERO))),
        ("seal", call(batches.seal(open))),
        ("cancel_batch", call(batches.cancel_batch(open))),
    ]
}

fn of_results<'a>(
    results: &'a dyn ResultQueue,
    known: &'a Known,
) -> Vec<(&'static str, Call<'a>)> {
    vec![
        (
            "report_progress",
            call(results.report_progress(&known.held.receipt, b"half")),
        ),
        ("read_results", {
            let job = std::slice::from_ref(known.held.job());
            call(results.read_results(job))
        }),
        ("wait_result", call(results.wait_result(known.held.job(), Duration::ZERO))),
    ]
}

fn of_schedulers<'a>(
    scheduler: &'a dyn ScheduleQueue,
    tick: &'a Tick,
) -> Vec<(&'static str, Call<'a>)> {
    vec![
        ("push_tick", call(scheduler.push_tick(tick, "ticked".into()))),
        ("schedules", call(scheduler.schedules())),
        ("put_schedule", call(scheduler.put_schedule(&tick.name, b"another"))),
        ("remove_schedule", call(scheduler.remove_schedule(&tick.name))),
    ]
}
