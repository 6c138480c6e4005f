//! The calls of an operator on several parts: the effect of a call that fails at some of
//! them (R21), and the figures of all.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
};
use relq_core::{
    ClaimRequest, Error, JobId, Operator as _, Queue, QueueName, ReliableQueue as _,
    ReliableQueueExt as _, Stats, WorkerId,
    environment::Environment,
    error::{Effect, ErrorContext, Operation},
    operator::{Cancelled, Redriven, Selection},
};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;

/// A part that refuses the calls of an operator, and does nothing.
struct Failing;

fn denied(operation: Operation) -> Error {
    let at = ErrorContext { backend: "mine", operation };
    Error::Denied { at, source: "the test says so".into() }
}

#[async_trait]
impl Override for Failing {
    async fn redrive(&self, _: &Right, _: &Selection) -> Result<Redriven, Error> {
        Err(denied(Operation::Redrive))
    }

    async fn purge_dead(&self, _: &Right, _: &Selection) -> Result<u64, Error> {
        Err(denied(Operation::Purge))
    }

    async fn purge(&self, _: &Right) -> Result<u64, Error> {
        Err(denied(Operation::Purge))
    }

    async fn cancel(&self, _: &Right, _: &JobId) -> Result<Cancelled, Error> {
        Err(denied(Operation::Cancel))
    }

    async fn pause(&self, _: &Right) -> Result<(), Error> {
        Err(denied(Operation::Pause))
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
    PartitionedQueue::new(parts.to_vec(), Environment::default())
        .unwrap()
        .starting_at(0)
}

/// A queue whose part 0 has one dead job, and whose part 1 fails.
async fn with_dead_job() -> PartitionedQueue {
    let first = in_memory();
    first.push(&["job".into()], None).await.unwrap();
    let worker = WorkerId::new("worker").unwrap();
    let ask = ClaimRequest::new(worker, Duration::from_secs(30));
    let held = first.claim_one(&ask).await.unwrap().unwrap();
    first.bury(&held.receipt, "broken").await.unwrap();
    of([first, with(Failing)])
}

/// An id that belongs to this part.
fn id_of(part: usize, queue: &PartitionedQueue) -> JobId {
    let ids = (0..).map(|number| format!("id-{number}"));
    let mut of_part = ids.filter(|id| queue.part_of().text(id) == part);
    JobId::new(of_part.next().unwrap()).unwrap()
}

/// R21: the caller learns that another part was changed.
#[tokio::test]
async fn a_call_that_one_part_has_done_may_have_happened() {
    let all = Selection::All;
    for (call, error) in [
        ("redrive", with_dead_job().await.redrive(&all).await.err()),
        ("purge_dead", with_dead_job().await.purge_dead(&all).await.err()),
        ("purge", with_dead_job().await.purge().await.err()),
        ("pause", with_dead_job().await.pause().await.err()),
    ] {
        assert_eq!(error.map(|error| error.effect()), Some(Effect::Maybe), "{call}");
    }
}

/// R21: a part without such a job is not changed.
#[tokio::test]
async fn a_call_that_changed_no_part_did_not_happen() {
    let queue = of([in_memory(), with(Failing)]);
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
    let queue = of([in_memory(), with(Failing)]);
    let id = id_of(0, &queue);
    queue.push_one(relq_core::NewJob::new("job").id(id.clone())).await.unwrap();

    let cancelled = queue.cancel(&id).await.unwrap();

    assert!(matches!(cancelled, Cancelled::Removed(_)), "{cancelled:?}");
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
