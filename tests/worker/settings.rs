//! Tests that the worker refuses invalid settings before it sends anything to the
//! store.

use std::{sync::Arc, time::Duration};

use relq::worker::{
    Failure, JobContext, RetryPolicy, Worker, WorkerError, WorkerState,
};

use crate::{
    faulty::Faulty,
    fixture::{Fixture, Running},
};

async fn refusal(set: impl FnOnce(Worker) -> Worker) -> String {
    let fixture = Fixture::sqlite().await;
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let worker = set(Worker::new(counted.clone()));
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    let progress = worker.progress.clone();
    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Setting(_)), "{error:?}");
    assert_eq!(progress.state(), WorkerState::Ended, "after {error:?}");
    assert_eq!(counted.claims.calls() + counted.recoveries.calls(), 0);
    error.to_string()
}

#[tokio::test]
async fn zero_lease_is_refused() {
    let error = refusal(|worker| worker.lease(Duration::ZERO)).await;
    assert_eq!(error, "the lease is 0ns: give at least 1ms");
}

#[tokio::test]
async fn endless_durations_are_refused() {
    let endless = Duration::MAX;
    let lease = refusal(|worker| worker.lease(endless)).await;
    let timeout = refusal(|worker| worker.timeout(endless)).await;
    let grace = refusal(|worker| worker.grace(endless)).await;
    let interval = refusal(|worker| worker.reap_every(endless)).await;
    assert_eq!(lease, "the lease is longer than a hundred years");
    assert_eq!(timeout, "the time-out is longer than a hundred years");
    assert_eq!(grace, "the grace time is longer than a hundred years");
    assert_eq!(interval, "the reaper's interval is longer than a hundred years");
}

#[tokio::test]
async fn endless_time_to_give_up_is_refused() {
    let error = refusal(|worker| worker.give_up_after(Duration::MAX)).await;
    assert_eq!(error, "the time to give up is longer than a hundred years");
}

/// A time-out of zero would end every handler at once, and an interval of zero would never
/// let the reaper rest.
#[tokio::test]
async fn durations_below_a_millisecond_are_refused() {
    let short = Duration::from_micros(999);
    let timeout = refusal(|worker| worker.timeout(short)).await;
    let interval = refusal(|worker| worker.reap_every(short)).await;
    let lease = refusal(|worker| worker.lease(short)).await;
    assert_eq!(timeout, "the time-out is 999µs: give at least 1ms");
    assert_eq!(interval, "the reaper's interval is 999µs: give at least 1ms");
    assert_eq!(lease, "the lease is 999µs: give at least 1ms");
}

#[test]
fn retry_policy_without_sense_is_refused() {
    let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
    let refused = |first, cap| RetryPolicy::exponential(first, cap).is_err();
    assert!(refused(Duration::ZERO, long));
    assert!(refused(long, short));
    assert!(refused(short, Duration::MAX));
    assert!(RetryPolicy::exponential(short, long).unwrap().at_least(long * 2).is_err());
}
