//! Tests of jobs that a worker claims before a handler is free.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

use relq::{
    NewJob,
    worker::{Failure, Handler, JobContext, Queues, Worker, WorkerError},
};
use tokio::sync::Semaphore;

use crate::{
    clocks::PartingClock,
    fixture::{Fixture, LONG_LEASE, Running},
    queues::{served, worker_on_several},
};

/// A worker with one slot that prefetches up to ten jobs.
fn worker(fixture: &Fixture) -> Worker {
    fixture.worker().concurrency(NonZeroU32::MIN).prefetch(many(10))
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// Waits for a permit, and uses it up.
async fn take(permits: &Semaphore) -> Result<(), Failure> {
    permits
        .acquire()
        .await
        .map_err(|closed| Failure::retry(closed.to_string()))?
        .forget();
    Ok(())
}

/// A handler that takes a permit for each job.
fn permitted(permits: &Arc<Semaphore>) -> impl Handler + use<> {
    let permits = Arc::clone(permits);
    move |_: JobContext| {
        let permits = Arc::clone(&permits);
        async move { take(&permits).await }
    }
}

/// While one job runs, the worker holds as many as it was asked to prefetch, and runs
/// them one after the other.
pub(crate) async fn jobs_are_claimed_ahead(fixture: Fixture) {
    fixture.push_many(30).await;
    let permits = Arc::new(Semaphore::new(0));

    let running = Running::start(worker(&fixture), permitted(&permits));

    fixture.until(|stats| (stats.leased, stats.ready) == (11, 19)).await;
    running.until_running(1).await;
    permits.add_permits(5);
    fixture.until(|stats| (stats.leased, stats.ready) == (11, 14)).await;
    permits.add_permits(25);
    running.until(|summary| summary.done == 30).await;
    running.stop().await;
}

/// R24: at shutdown the jobs that wait for a slot are given back, and their attempts are
/// not counted.
pub(crate) async fn waiting_jobs_are_given_back(fixture: Fixture) {
    fixture.push_many(5).await;
    let permits = Arc::new(Semaphore::new(0));
    let running = Running::start(worker(&fixture), permitted(&permits));
    fixture.until(|stats| stats.leased == 5).await;
    running.until_running(1).await;

    running.ask_to_stop();
    fixture.until(|stats| (stats.leased, stats.ready) == (1, 4)).await;
    permits.add_permits(1);

    assert_eq!(running.stop().await.done, 1);
    let mut claimed = 0;
    while let Some(delivery) = fixture.claim_one().await {
        assert_eq!(delivery.receipt.attempt(), 1, "no attempt was counted");
        claimed += 1;
    }
    assert_eq!(claimed, 4, "no other job was run");
}

/// Jobs that waited too long are given back, and the worker claims none ahead while its
/// handler takes long. When handlers end again, it soon claims as many ahead as before.
pub(crate) async fn jobs_are_claimed_ahead_again(fixture: Fixture) {
    fixture.push_many(20).await;
    let (permits, clock) = (Arc::new(Semaphore::new(0)), PartingClock::default());
    let worker = worker(&fixture).prefetch(many(4)).environment(clock.environment());
    let running = Running::start(worker, permitted(&permits));
    fixture.until(|stats| (stats.leased, stats.ready) == (5, 15)).await;
    running.until_running(1).await;

    clock.advance(LONG_LEASE / 2);
    fixture.until(|stats| (stats.leased, stats.ready) == (1, 19)).await;
    permits.add_permits(4);
    fixture.until(|stats| (stats.leased, stats.ready) == (5, 11)).await;

    permits.add_permits(16);
    running.until(|summary| summary.done == 20).await;
    assert_eq!(running.stop().await.given_back, 4);
}

/// The bytes of the waiting payloads are bounded, however many jobs may wait.
pub(crate) async fn waiting_payloads_are_bounded(fixture: Fixture) {
    const JOBS: usize = 16;
    for _ in 0..JOBS {
        fixture.push(NewJob::new(vec![b'x'; 1 << 20])).await;
    }
    let most = Arc::new(AtomicU64::new(0));
    let permits = Arc::new(Semaphore::new(0));
    let (queue, seen, gate) =
        (fixture.queue.clone(), Arc::clone(&most), Arc::clone(&permits));
    let handler = move |_: JobContext| {
        let (queue, seen, gate) = (queue.clone(), Arc::clone(&seen), Arc::clone(&gate));
        async move {
            take(&gate).await?;
            let stats = queue.stats().await;
            let stats = stats.map_err(|error| Failure::retry(error.to_string()))?;
            seen.fetch_max(stats.leased, SeqCst);
            Ok::<_, Failure>(())
        }
    };

    let running = Running::start(worker(&fixture).prefetch(many(100)), handler);
    fixture.until(|stats| stats.leased >= 5).await;
    permits.add_permits(JOBS);

    running.until(|summary| summary.done == JOBS as u64).await;

    // The bytes of those jobs count no more.
    fixture.push_many(5).await;
    fixture.until(|stats| stats.leased == 5).await;
    permits.add_permits(5);
    running.until(|summary| summary.done == JOBS as u64 + 5).await;
    running.stop().await;
    // One job runs, four wait, one is not settled yet, and a claim that was sent before
    // brings as many as fit into one reply.
    let most = most.load(SeqCst);
    assert!((5..=8).contains(&most), "{most} jobs were held at once");
}

/// A prefetched job of one queue would wait for a slot that another queue may use.
pub(crate) async fn several_queues_are_refused(fixture: Fixture) {
    let queues = Queues::strict([served("work", fixture.queue.clone())]);
    let worker = worker_on_several(queues).prefetch(many(10));
    let handler = async |_: JobContext| Ok::<_, Failure>(());

    let error = Running::start(worker, handler).end().await.unwrap_err();

    assert!(matches!(error, WorkerError::Setting(_)), "{error:?}");
    assert_eq!(
        error.to_string(),
        "the number of prefetched jobs is set: a worker on several queues cannot prefetch"
    );
}
