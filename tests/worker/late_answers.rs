//! Tests of late replies: if the reply to a claim is read after its leases may have
//! expired, the worker starts none of its jobs.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    NewJob, ReliableQueueExt,
    capabilities::LeaseScope,
    worker::{Failure, JobContext},
};
use tokio::sync::Notify;

use crate::{
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Fixture, LONG_LEASE, Running, SHORT_LEASE, eventually, worker_on},
};

/// The attempts that a handler has run. An attempt has a payload and a number.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<Vec<(String, u32)>>>);

impl Runs {
    fn note(&self, job: &JobContext) {
        let payload = String::from_utf8(job.payload().to_vec()).unwrap();
        self.0.lock().unwrap().push((payload, job.attempt()));
    }

    fn of(&self, payload: &str) -> Vec<u32> {
        let runs = self.0.lock().unwrap();
        runs.iter().filter(|(p, _)| p == payload).map(|(_, attempt)| *attempt).collect()
    }

    fn attempts(&self) -> Vec<u32> {
        let mut attempts: Vec<_> =
            self.0.lock().unwrap().iter().map(|(_, attempt)| *attempt).collect();
        attempts.sort_unstable();
        attempts
    }
}

/// Creates a handler that records its job and succeeds.
fn recording_handler(
    runs: &Runs,
) -> impl Fn(JobContext) -> std::future::Ready<Result<(), Failure>> + Send + Sync + use<>
{
    let runs = runs.clone();
    move |job: JobContext| {
        runs.note(&job);
        std::future::ready(Ok(()))
    }
}

/// Waits until the worker's leases have expired, then claims the only job as another
/// worker and finishes it.
async fn finish_as_another(fixture: &Fixture) {
    let stolen = fixture.recover_and_claim_one().await;
    fixture.queue.ack(&stolen.receipt).await.unwrap();
}

/// R6: if the lease expired before the reply to the claim was read, and another worker
/// ran the job, the first worker does not start it.
pub(crate) async fn late_answer_starts_nothing(fixture: Fixture) {
    fixture.push("contended").await;
    let (runs, release) = (Runs::default(), Arc::new(Notify::new()));
    let held_back = Arc::clone(&release);

    let slow =
        Arc::new(Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
            (call == 0).then(|| Fault::Late(held_back.clone()))
        }));
    let worker = Running::start(
        worker_on(slow.clone()).lease(SHORT_LEASE),
        recording_handler(&runs),
    );
    eventually(|| slow.claims.answers() == 1).await;
    finish_as_another(&fixture).await;
    release.notify_one();
    fixture.push("next").await;
    fixture.until(|stats| stats.finished == 2).await;

    worker.stop().await;
    assert!(runs.of("contended").is_empty());
    // A machine that stands still ends the short lease of this job, too.
    assert!(!runs.of("next").is_empty());
}

/// R6: a job whose lease expired during a suspend of the worker's machine is not
/// started. The worker's steady clock stopped during the suspend, and the store's clock
/// did not.
pub(crate) async fn answer_from_before_a_suspend_starts_nothing(fixture: Fixture) {
    fixture.push("contended").await;
    let (runs, release) = (Runs::default(), Arc::new(Notify::new()));
    let (held_back, clock) = (Arc::clone(&release), PartingClock::default());

    let slow =
        Arc::new(Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
            (call == 0).then(|| Fault::Late(held_back.clone()))
        }));
    let worker =
        worker_on(slow.clone()).lease(SHORT_LEASE).environment(clock.environment());
    let worker = Running::start(worker, recording_handler(&runs));
    eventually(|| slow.claims.answers() == 1).await;
    clock.suspend();
    finish_as_another(&fixture).await;
    clock.resume();
    release.notify_one();
    fixture.push("next").await;
    fixture.until(|stats| stats.finished == 2).await;

    worker.stop().await;
    assert!(runs.of("contended").is_empty());
    // A machine that stands still ends the short lease of this job, too.
    assert!(!runs.of("next").is_empty());
}

/// R11: the jobs of a late reply are given back without counting the attempt, and the
/// next claim asks for half as many jobs. When a claim asks for one job, the attempt
/// counts, so that a job whose replies are always late is buried in the end.
pub(crate) async fn late_answers_halve_the_claims(fixture: Fixture) {
    fixture.push_many(8).await;
    let (runs, asks) = (Runs::default(), Arc::new(Mutex::new(Vec::new())));
    let (asked, clock) = (Arc::clone(&asks), PartingClock::default());
    let moved = clock.clone();

    let slow = Faulty::new(fixture.queue.clone()).on_claim(move |call, jobs| {
        asked.lock().unwrap().push(jobs);
        let moved = moved.clone();
        let past_lease = move || moved.advance(LONG_LEASE * 2);
        (call < 4).then(|| Fault::Overtaken(Arc::new(past_lease)))
    });
    let worker = worker_on(Arc::new(slow)).concurrency(8.try_into().unwrap());
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, recording_handler(&runs));
    fixture.until(|stats| stats.finished == 8).await;
    let in_trouble = asks.lock().unwrap().clone();
    eventually(|| asks.lock().unwrap().last() == Some(&8)).await;

    let summary = worker.stop().await;
    assert_eq!(in_trouble[..4], [8, 4, 2, 1]);
    assert_eq!(runs.attempts(), [1, 1, 1, 1, 1, 1, 1, 2]);
    assert_eq!((summary.done, summary.given_back, summary.retried), (8, 14, 1));
}

/// R18: the machine's clock is set forward during a claim. The reply may be from before a
/// suspend, so its job is not started. But it was not late, so its only attempt does not
/// count, although the worker claims one job at a time.
pub(crate) async fn set_clock_makes_no_answer_late(fixture: Fixture) {
    fixture.push(NewJob::new("once").max_attempts(1.try_into().unwrap())).await;
    let (runs, clock) = (Runs::default(), PartingClock::default());
    let moved = clock.clone();

    let slow = Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
        let moved = moved.clone();
        let is_set = move || moved.step_wall(LONG_LEASE * 2);
        (call == 0).then(|| Fault::Overtaken(Arc::new(is_set)))
    });
    let worker = worker_on(Arc::new(slow)).concurrency(1.try_into().unwrap());
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, recording_handler(&runs));
    fixture.until(|stats| stats.unfinished() == 0).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (1, 0, 0));
    assert_eq!(runs.attempts(), [1]);
}

/// R11: a reply that took longer than the lease counts as late, also if the machine's clock
/// was set forward meanwhile.
pub(crate) async fn late_answer_counts_although_the_clock_was_set(fixture: Fixture) {
    fixture.push("late").await;
    let (runs, clock) = (Runs::default(), PartingClock::default());
    let moved = clock.clone();

    let slow = Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
        let moved = moved.clone();
        let is_late_and_set = move || {
            moved.advance(LONG_LEASE * 2);
            moved.step_wall(LONG_LEASE * 2);
        };
        (call == 0).then(|| Fault::Overtaken(Arc::new(is_late_and_set)))
    });
    let worker = worker_on(Arc::new(slow)).concurrency(1.try_into().unwrap());
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, recording_handler(&runs));
    fixture.until(|stats| stats.finished == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.retried), (1, 1));
    assert_eq!(runs.attempts(), [2]);
}

/// R11: a job is buried if the reply to its claim is always late. The dead letter
/// contains the reason.
pub(crate) async fn job_that_always_comes_late_is_buried(fixture: Fixture) {
    fixture.push(NewJob::new("cursed").max_attempts(3.try_into().unwrap())).await;
    let (runs, clock) = (Runs::default(), PartingClock::default());
    let moved = clock.clone();

    let slow = Faulty::new(fixture.queue.clone()).on_claim(move |_, _| {
        let moved = moved.clone();
        let past_lease = move || moved.advance(LONG_LEASE * 2);
        Some(Fault::Overtaken(Arc::new(past_lease)))
    });
    let worker = worker_on(Arc::new(slow));
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, recording_handler(&runs));
    fixture.until(|stats| stats.dead == 1).await;

    worker.halt();
    worker.end().await.unwrap();
    assert!(runs.attempts().is_empty());
    let error = fixture.dead().await[0].last_error.clone().unwrap();
    assert!(error.contains("lease is 3600s"), "{error}");
}

/// R11: no attempt is lost if a job's own lease is shorter than the time for which the
/// claim waits for jobs.
pub(crate) async fn own_short_lease_costs_a_waiting_worker_no_attempt(
    fixture: Fixture,
) {
    if fixture.queue.capabilities().lease_scope == LeaseScope::Worker {
        return;
    }
    let runs = Runs::default();
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let worker = worker_on(counted.clone()).concurrency(1.try_into().unwrap());
    let worker = Running::start(worker, recording_handler(&runs));
    eventually(|| counted.claims.calls() == 1).await;
    // Push the job while the claim still waits. The claim waits for up to five seconds.
    let lease = Duration::from_secs(2);
    tokio::time::sleep(lease * 3 / 2).await;
    let short = NewJob::new("short").lease(lease).max_attempts(1.try_into().unwrap());
    fixture.push(short).await;
    fixture.until(|stats| stats.unfinished() == 0).await;

    assert_eq!((worker.stop().await.done, runs.attempts()), (1, vec![1]));
}

/// R6: a job is not started if its already-done check took longer than its lease.
pub(crate) async fn lease_lost_during_the_check_starts_nothing(fixture: Fixture) {
    fixture.push("contended").await;
    let first = fixture.claim_one().await.unwrap();
    fixture.queue.retry(&first.receipt, Duration::ZERO, "again").await.unwrap();
    let (runs, checks) = (Runs::default(), Arc::new(AtomicUsize::new(0)));
    let asked = Arc::clone(&checks);

    let deaf =
        Faulty::new(fixture.queue.clone()).on_extend(|_, _| Some(Fault::Unavailable));
    let worker = worker_on(Arc::new(deaf)).lease(SHORT_LEASE).already_done(
        move |_: JobContext| {
            let is_first = asked.fetch_add(1, SeqCst) == 0;
            async move {
                let takes = if is_first { SHORT_LEASE * 2 } else { Duration::ZERO };
                tokio::time::sleep(takes).await;
                Ok::<_, Failure>(false)
            }
        },
    );
    let worker = Running::start(worker, recording_handler(&runs));
    fixture.until(|stats| stats.finished == 1).await;

    assert!(worker.stop().await.lost >= 1);
    let attempts = runs.of("contended");
    assert!(attempts.first() >= Some(&3), "{attempts:?}");
}
