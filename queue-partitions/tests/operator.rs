//! The calls of an operator on several parts: the effect of a call that fails at some of
//! them (R21), and the figures of all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
};
use relq_core::{
    ClaimRequest, Error, JobId, Operator as _, Queue, QueueName, ReliableQueue as _,
    ReliableQueueExt as _, Stats, WorkerId,
    environment::Environment,
    error::{Effect, ErrorContext, Operation},
    operator::{Cancelled, JobState, JobView, PeekRequest, Redriven, Selection},
    outcome::{Recovered, Released},
};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;

/// The errors with which a part fails.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Denied,
    Unavailable,
    NotReplicated,
    Unreadable,
}

/// A part that answers the calls of an operator with an error, and does nothing.
struct Failing(Kind);

impl Failing {
    fn at(&self, operation: Operation) -> Error {
        let at = ErrorContext { backend: "mine", operation };
        let source = "the test says so".into();
        match self.0 {
            Kind::Denied => Error::Denied { at, source },
            Kind::Unavailable => Error::Unavailable { at, source },
            Kind::NotReplicated => Error::NotReplicated { at, source },
            Kind::Unreadable => Error::Unreadable { at, source },
        }
    }
}

#[async_trait]
impl Override for Failing {
    async fn recover(&self, _: &Right, _: NonZeroU32) -> Result<Recovered, Error> {
        Err(self.at(Operation::Recover))
    }

    async fn redrive(&self, _: &Right, _: &Selection) -> Result<Redriven, Error> {
        Err(self.at(Operation::Redrive))
    }

    async fn purge_dead(&self, _: &Right, _: &Selection) -> Result<u64, Error> {
        Err(self.at(Operation::Purge))
    }

    async fn purge(&self, _: &Right) -> Result<u64, Error> {
        Err(self.at(Operation::Purge))
    }

    async fn cancel(&self, _: &Right, _: &JobId) -> Result<Cancelled, Error> {
        Err(self.at(Operation::Cancel))
    }

    async fn pause(&self, _: &Right) -> Result<(), Error> {
        Err(self.at(Operation::Pause))
    }

    async fn resume(&self, _: &Right) -> Result<(), Error> {
        Err(self.at(Operation::Resume))
    }
}

/// A part of which each count is a multiple of this number.
struct Counts(u32);

/// Statistics of which each count is another multiple of `number`.
fn stats_of(number: u32) -> Stats {
    let times = |factor: u64| factor * u64::from(number);
    let mut stats = Stats::new();
    stats.ready = times(1);
    stats.scheduled = times(2);
    stats.leased = times(3);
    stats.overdue = times(4);
    stats.dead = times(5);
    stats.finished = times(6);
    stats.discarded = times(7);
    stats.cancelled = times(8);
    stats
}

/// Counts of a recovery, each another multiple of `number`.
fn recovered_of(number: u32) -> Recovered {
    let (requeued, buried, promoted) = (number, 2 * number, 3 * number);
    Recovered { requeued, buried, promoted, ..Recovered::default() }
}

fn redriven_of(number: u32) -> Redriven {
    Redriven { moved: number.into(), duplicates: u64::from(number) * 2 }
}

#[async_trait]
impl Override for Counts {
    async fn stats(&self, _: &Right) -> Result<Stats, Error> {
        Ok(stats_of(self.0))
    }

    async fn recover(&self, _: &Right, _: NonZeroU32) -> Result<Recovered, Error> {
        Ok(recovered_of(self.0))
    }

    async fn release_worker(&self, _: &Right, _: &WorkerId) -> Result<Released, Error> {
        Ok(Released { jobs: self.0.into() })
    }

    async fn redrive(&self, _: &Right, _: &Selection) -> Result<Redriven, Error> {
        Ok(redriven_of(self.0))
    }

    async fn purge_dead(&self, _: &Right, _: &Selection) -> Result<u64, Error> {
        Ok(self.0.into())
    }

    async fn purge(&self, _: &Right) -> Result<u64, Error> {
        Ok(self.0.into())
    }
}

/// A part whose oldest ready job has this age.
struct Aged(Option<Duration>);

#[async_trait]
impl Override for Aged {
    async fn stats(&self, _: &Right) -> Result<Stats, Error> {
        let mut stats = Stats::new();
        stats.oldest_ready_age = self.0;
        Ok(stats)
    }
}

fn in_memory() -> Arc<dyn Queue> {
    let name = QueueName::new("emails").unwrap();
    Arc::new(MemoryStore::default().open(name, Environment::default()))
}

fn with(overrides: impl Override + 'static) -> Arc<dyn Queue> {
    let right = Right { queue: in_memory(), environment: Environment::default() };
    Arc::new(OverriddenQueue::new(right, Arc::new(overrides)))
}

fn of<const PARTS: usize>(parts: [Arc<dyn Queue>; PARTS]) -> PartitionedQueue {
    PartitionedQueue::new(parts.into(), Environment::default()).unwrap().starting_at(0)
}

/// A queue of two parts: one fails, and the other one has a dead job. The part with the
/// number `failing` fails.
async fn with_dead_job(failing: usize) -> PartitionedQueue {
    let healthy = in_memory();
    healthy.push(&["job".into()], None).await.unwrap();
    let worker = WorkerId::new("worker").unwrap();
    let ask = ClaimRequest::new(worker, Duration::from_secs(30));
    let held = healthy.claim_one(&ask).await.unwrap().unwrap();
    healthy.bury(&held.receipt, "broken").await.unwrap();
    let mut parts = [with(Failing(Kind::Denied)), healthy];
    parts.rotate_right(failing);
    of(parts)
}

/// An id that belongs to this part.
fn id_of(part: usize, queue: &PartitionedQueue) -> JobId {
    let ids = (0..).map(|number| format!("id-{number}"));
    let mut of_part = ids.filter(|id| queue.part_of().text(id) == part);
    JobId::new(of_part.next().unwrap()).unwrap()
}

/// R21: the call goes to each part, also after one has failed, and the caller learns that
/// another part was changed.
#[tokio::test]
async fn a_call_that_one_part_has_done_may_have_happened() {
    let all = Selection::All;
    for failing in [0, 1] {
        let queue = async || with_dead_job(failing).await;
        for (call, error) in [
            ("redrive", queue().await.redrive(&all).await.err()),
            ("purge_dead", queue().await.purge_dead(&all).await.err()),
            ("purge", queue().await.purge().await.err()),
            ("pause", queue().await.pause().await.err()),
            ("resume", queue().await.resume().await.err()),
        ] {
            let effect = error.map(|error| error.effect());
            let what = format!("{call} fails at part {failing}");
            assert_eq!(effect, Some(Effect::Maybe), "R21: {what}");
        }
    }
}

/// R21: a part without such a job is not changed.
#[tokio::test]
async fn a_call_that_changed_no_part_did_not_happen() {
    let queue = of([in_memory(), with(Failing(Kind::Denied))]);
    let id = id_of(0, &queue);
    for (call, error) in [
        ("redrive", queue.redrive(&Selection::All).await.err()),
        ("purge_dead", queue.purge_dead(&Selection::All).await.err()),
        ("purge", queue.purge().await.err()),
        ("cancel", queue.cancel(&id).await.err()),
    ] {
        assert_eq!(error.map(|error| error.effect()), Some(Effect::No), "{call}");
    }
}

/// The part that refuses is not asked when the job is found before.
#[tokio::test]
async fn a_cancel_ends_at_the_part_that_has_the_job() {
    let queue = of([in_memory(), with(Failing(Kind::Denied))]);
    let id = id_of(0, &queue);
    queue.push_one(relq_core::NewJob::new("job").id(id.clone())).await.unwrap();

    let cancelled = queue.cancel(&id).await.unwrap();

    assert!(matches!(cancelled, Cancelled::Removed(_)), "{cancelled:?}");
}

/// R21: "it is done" holds for one part, and not for the call.
#[tokio::test]
async fn a_call_that_one_part_refuses_is_never_called_done() {
    for done in [Kind::NotReplicated, Kind::Unreadable] {
        for refused in [Kind::Denied, Kind::Unavailable] {
            for kinds in [[done, refused], [refused, done]] {
                let queue = of(kinds.map(|kind| with(Failing(kind))));
                for error in [
                    queue.redrive(&Selection::All).await.unwrap_err(),
                    queue.purge().await.unwrap_err(),
                    queue.pause().await.unwrap_err(),
                ] {
                    let is_doubtful = matches!(error, Error::Interrupted { .. });
                    assert!(is_doubtful, "{kinds:?}: {}", error.full_message());
                }
            }
        }
    }
}

/// R21: the job may be in the part that was not asked.
#[tokio::test]
async fn a_cancel_that_has_not_asked_all_parts_is_never_called_done() {
    for kind in [Kind::NotReplicated, Kind::Unreadable] {
        let queue = of([with(Failing(kind)), in_memory()]);
        let (first, last) = (id_of(0, &queue), id_of(1, &queue));

        let some_asked = queue.cancel(&first).await.unwrap_err();
        let all_asked = queue.cancel(&last).await.unwrap_err();

        let message = some_asked.full_message();
        assert!(matches!(some_asked, Error::Interrupted { .. }), "{message}");
        assert_eq!(all_asked.effect(), Failing(kind).at(Operation::Cancel).effect());
        assert!(!matches!(all_asked, Error::Interrupted { .. }), "{all_asked}");
    }
}

/// R21: the jobs of a part that is down are not recovered.
#[tokio::test]
async fn a_recovery_without_a_part_is_never_called_done() {
    for kinds in [
        [Kind::Unreadable, Kind::Unavailable],
        [Kind::Unavailable, Kind::Unreadable],
        [Kind::NotReplicated, Kind::Unavailable],
    ] {
        let queue = of(kinds.map(|kind| with(Failing(kind))));

        let error = queue.recover(NonZeroU32::new(10).unwrap()).await.unwrap_err();

        let is_doubtful = matches!(error, Error::Interrupted { .. });
        assert!(is_doubtful, "{kinds:?}: {}", error.full_message());
    }
}

/// R23: each count of the queue is that of all parts together, whichever part has most.
#[tokio::test]
async fn each_count_is_that_of_all_parts() {
    for counts in [[1, 2, 4], [2, 4, 1], [4, 1, 2]] {
        let queue = of(counts.map(|count| with(Counts(count))));
        let worker = WorkerId::new("worker").unwrap();
        let page = NonZeroU32::new(1000).unwrap();

        assert_eq!(queue.stats().await.unwrap(), stats_of(7), "{counts:?}: stats");
        let recovered = queue.recover(page).await.unwrap();
        assert_eq!(recovered, recovered_of(7), "{counts:?}: recover");
        let released = queue.release_worker(&worker).await.unwrap();
        assert_eq!(released, Released { jobs: 7 }, "{counts:?}: release_worker");
        let redriven = queue.redrive(&Selection::All).await.unwrap();
        assert_eq!(redriven, redriven_of(7), "{counts:?}: redrive");
        let purged = queue.purge_dead(&Selection::All).await.unwrap();
        assert_eq!(purged, 7, "{counts:?}: purge_dead");
        assert_eq!(queue.purge().await.unwrap(), 7, "{counts:?}: purge");
    }
}

/// R21: a page of several parts has about as many bytes as a step moves, as a page of one
/// part has, and the next pages show the other jobs.
#[tokio::test]
async fn a_page_of_large_jobs_in_several_parts_ends_early() {
    const LARGE: usize = ClaimRequest::MAX_BYTES * 7 / 8;
    let queue = of([(); 4].map(|()| in_memory()));
    for part in queue.parts() {
        part.push(&[vec![7; LARGE].into()], None).await.unwrap();
    }

    let many = NonZeroU32::new(100).unwrap();
    let (mut ask, mut listed) = (PeekRequest::new(JobState::Ready, many), 0);
    loop {
        let page = queue.peek(&ask).await.unwrap();
        let bytes: usize = page.jobs.iter().map(JobView::total_bytes).sum();
        assert!(bytes <= 2 * ClaimRequest::MAX_BYTES, "R21: a page of {bytes} bytes");
        listed += page.jobs.len();
        let Some(next) = page.next else { break };
        ask = ask.after(next);
    }

    assert_eq!(listed, 4, "R23: the pages show the job of each part once");
}

/// The oldest job of the queue, whichever part it is in.
#[tokio::test]
async fn the_oldest_ready_job_is_that_of_any_part() {
    let age = |seconds| Some(Duration::from_secs(seconds));
    for ages in [[age(1), age(3), None], [None, age(2), age(3)], [age(3), None, age(1)]]
    {
        let queue = of(ages.map(|age| with(Aged(age))));

        assert_eq!(queue.stats().await.unwrap().oldest_ready_age, age(3), "{ages:?}");
    }
    let empty = of([None, None].map(|age| with(Aged(age))));
    assert_eq!(empty.stats().await.unwrap().oldest_ready_age, None);
}
