//! Tests of the slots of a worker: it runs no more handlers than it has slots, uses all
//! slots while there are jobs, and makes few calls when the queue is empty.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use relq::{
    ReliableQueue,
    capabilities::{Capability, LeaseScope},
    worker::{CancellationToken, Failure, JobContext},
};

use crate::{
    faulty::{Fault, Faulty},
    fixture::{Dropped, Fixture, Running, eventually, worker_on},
};

/// A worker claims a job only when a slot is free (bogardt/bullmq-rs#21). This holds
/// even when two concurrent calls share the slots.
pub(crate) async fn concurrency_is_never_exceeded(fixture: Fixture) {
    for (round, slots) in (1..).zip([4, 32]) {
        fixture.push_many(200).await;
        let peaks = peaks(&fixture, slots, round * 200).await;
        assert_eq!(peaks.running, slots);
        // A leased job is running, or its settlement is pending.
        assert!(peaks.leased <= slots * 2, "{} of {slots}", peaks.leased);
    }
}

/// A handler that blocks its thread does not prevent other slots from running jobs.
pub(crate) async fn handler_that_blocks_holds_up_no_other_slot(fixture: Fixture) {
    fixture.push("slow").await;
    let (is_over, runs) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (ends, ran): (_, Arc<AtomicUsize>) = (Arc::clone(&is_over), Arc::clone(&runs));
    let over = Dropped(is_over);

    let worker = fixture.start(move |job: JobContext| {
        ran.fetch_add(1, SeqCst);
        let ends = Arc::clone(&ends);
        async move {
            while job.payload() == "slow" && !ends.load(SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            Ok::<_, Failure>(())
        }
    });
    eventually(|| runs.load(SeqCst) == 1).await;
    fixture.push("quick").await;
    worker.until(|summary| summary.done == 1).await;
    drop(over);

    assert_eq!(worker.stop().await.done, 2);
}

/// The largest numbers of running and of leased jobs while a worker ran.
struct Peaks {
    running: usize,
    leased: usize,
}

/// Runs a worker until `finished` jobs are finished, and records the peaks.
async fn peaks(fixture: &Fixture, slots: usize, finished: u64) -> Peaks {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = Arc::clone(&most);
    let worker =
        fixture.worker().concurrency(u32::try_from(slots).unwrap().try_into().unwrap());
    let worker = Running::start(worker, move |_: JobContext| {
        let (running, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            // The first handlers wait until all slots are in use.
            eventually(|| peak.load(SeqCst) >= slots).await;
            tokio::time::sleep(Duration::from_millis(1)).await;
            running.fetch_sub(1, SeqCst);
            Ok::<_, Failure>(())
        }
    });
    let leased_at_once = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&leased_at_once);
    fixture
        .until(|stats| {
            seen.fetch_max(usize::try_from(stats.leased).unwrap(), SeqCst);
            stats.finished == finished
        })
        .await;
    assert_eq!(worker.stop().await.done, 200);
    Peaks { running: most.load(SeqCst), leased: leased_at_once.load(SeqCst) }
}

/// A worker with many slots shares them between two concurrent calls, and still runs
/// each job only once.
pub(crate) async fn many_slots_run_each_job_once(fixture: Fixture) {
    fixture.push_many(5000).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let ran = Arc::clone(&runs);
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));

    let worker = worker_on(counted.clone()).concurrency(512.try_into().unwrap());
    let worker = Running::start(worker, move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        async { Ok::<_, Failure>(()) }
    });
    fixture.until(|stats| stats.finished == 5000).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, runs.load(SeqCst)), (5000, 5000));
    assert!(counted.settlements.calls() < 1000, "{}", counted.settlements.calls());
}

/// A claim that waits for jobs does not delay the settlement of jobs that have ended.
pub(crate) async fn waiting_claim_holds_back_no_settlement(fixture: Fixture) {
    fixture.push("only").await;

    let waits = Faulty::new(fixture.queue.clone())
        .on_claim(|call, _| (call > 0).then(|| Fault::Late(Arc::default())));
    let waits = Arc::new(waits);
    let claims = waits.claims.clone();
    let worker = Running::start(worker_on(waits), move |_: JobContext| {
        let claims = claims.clone();
        async move {
            // The second claim never returns.
            eventually(|| claims.calls() >= 2).await;
            Ok::<_, Failure>(())
        }
    });
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;
}

/// An idle worker waits in one claim at a time, however many slots it has.
pub(crate) async fn idle_worker_is_quiet(fixture: Fixture) {
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let worker =
        relq::worker::Worker::new(counted.clone()).concurrency(64.try_into().unwrap());
    // Where workers are listed, it reports once at its start (R33).
    let reports = usize::from(counted.capabilities().supports(Capability::Inspect));
    let start = Instant::now();
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (claims, reported) = (&counted.claims, &counted.reports);
    eventually(|| claims.calls() >= 1 && reported.calls() >= reports).await;
    worker.stop().await;

    // A claim waits for five seconds, and recoveries are further apart.
    let rounds = usize::try_from(start.elapsed().as_secs() / 4).unwrap();
    assert!(claims.calls() <= 1 + rounds, "{}", claims.calls());
    let recoveries = counted.recoveries.calls();
    assert!(recoveries <= 2 + rounds, "{recoveries}");
    assert_eq!(counted.settlements.calls(), 0);
    // On a backend with one lease for each worker, an idle worker must send heartbeats.
    let heartbeats =
        usize::from(counted.capabilities().lease_scope == LeaseScope::Worker);
    assert!(counted.extensions.calls() <= heartbeats * (1 + rounds));
    assert_eq!(reported.calls(), reports);
}

/// R6: on a runtime of one thread, a handler that blocks it starts before the next claim is
/// sent. Otherwise the leases of that claim would run while no task can read its reply.
#[tokio::test]
async fn handler_on_the_only_thread_starts_before_the_next_claim() {
    let fixture = Fixture::sqlite().await;
    fixture.push("job").await;
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let (claims, at_start) = (counted.claims.clone(), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&at_start);

    let worker = Running::start(worker_on(counted), move |_: JobContext| {
        seen.store(claims.calls(), SeqCst);
        async { Ok::<_, Failure>(()) }
    });
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    assert_eq!(at_start.load(SeqCst), 1, "claims before the start");
}

/// Handlers that end together are settled in one call, also when no call is under way that
/// they could wait for.
#[tokio::test]
async fn handlers_that_end_together_share_a_call() {
    const JOBS: u32 = 8;
    let fixture = Fixture::sqlite().await;
    fixture.push_many(JOBS as usize).await;
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let is_over = CancellationToken::new();
    let over = is_over.clone();

    let worker = worker_on(counted.clone()).concurrency(JOBS.try_into().unwrap());
    let worker = Running::start(worker, move |_: JobContext| {
        let over = over.clone();
        async move {
            over.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(u64::from(JOBS)).await;
    is_over.cancel();
    worker.until(|summary| summary.done == u64::from(JOBS)).await;
    worker.stop().await;

    assert_eq!(counted.settlements.calls(), 1);
}
