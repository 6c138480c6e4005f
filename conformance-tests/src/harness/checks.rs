//! The assertions that cases use.

use std::{
    collections::BTreeMap, fmt::Debug, future::Future, num::NonZeroU16, time::Duration,
};

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, JobId, NewJob, Priority, PushToken, Settlement,
    operator::{JobView, StateDetail},
    outcome::{DuplicateOf, Pushed, Settled},
    unique::UniqueKey,
};
use tokio::time::{Instant, sleep};

use crate::{
    harness::{actor::Actor, times::HELD},
    spec::line::Line,
};

/// How long `eventually` waits for an effect that should come at once.
const PATIENCE: Duration = Duration::from_secs(10);

/// Calls `look` again and again until it returns a value, and returns that value.
/// Panics after [`PATIENCE`] with a message that names `what`.
pub(crate) async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    mut look: impl FnMut() -> F,
) -> T {
    let give_up = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < give_up, "{what} did not come about in {PATIENCE:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the number of leased jobs no longer changes, and returns that number.
/// The wait is needed because commands of dropped calls may still run.
pub(crate) async fn leased_at_rest(actor: &Actor) -> u64 {
    let mut last = actor.figures().await.leased;
    loop {
        sleep(Duration::from_millis(50)).await;
        let now = actor.figures().await.leased;
        if now == last {
            return now;
        }
        last = now;
    }
}

/// Claims and acks jobs until nothing is ready, and returns the deliveries.
pub(crate) async fn drain(actor: &Actor) -> Vec<Delivery> {
    let mut all = Vec::new();
    loop {
        let taken = actor.take(actor.limits().max_jobs_per_call.get().min(500)).await;
        if taken.is_empty() {
            return all;
        }
        assert_applied(&settle_all(actor, &taken, &Disposition::Done).await);
        all.extend(taken);
    }
}

/// Drains the queue, and asserts that it delivers exactly these payloads in any order.
pub(crate) async fn delivers<P: Into<Bytes>>(
    actor: &Actor,
    wanted: impl IntoIterator<Item = P>,
) {
    let got = payloads(&drain(actor).await);
    expect_exactly(got, wanted.into_iter().map(Into::into));
}

/// Settles many jobs with the same disposition in one call. Returns a result for each.
pub(crate) async fn settle_all(
    actor: &Actor,
    held: &[Delivery],
    disposition: &Disposition,
) -> Vec<Settled> {
    let done: Vec<_> = held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), disposition.clone()))
        .collect();
    actor.settle(&done).await.expect("the settlement is answered")
}

/// Asserts that every settlement was carried out.
pub(crate) fn assert_applied(settled: &[Settled]) {
    let are_applied = settled.iter().all(|one| *one == Settled::Applied);
    assert!(are_applied, "R7: a settlement by its holder is not applied: {settled:?}");
}

/// Asserts that both lists contain the same items, each equally often, in any order.
pub(crate) fn expect_exactly<T: Ord + Debug>(
    got: impl IntoIterator<Item = T>,
    wanted: impl IntoIterator<Item = T>,
) {
    let counts = counts(got, wanted);
    assert!(counts.is_empty(), "too many (+) or missing (-): {counts:?}");
}

/// Counts how often each item of `got` is too many (a positive number) or missing (a
/// negative number), compared with `wanted`. Items with the right count are left out.
pub(crate) fn counts<T: Ord>(
    got: impl IntoIterator<Item = T>,
    wanted: impl IntoIterator<Item = T>,
) -> BTreeMap<T, i64> {
    let mut counts = BTreeMap::<T, i64>::new();
    wanted.into_iter().for_each(|one| *counts.entry(one).or_default() -= 1);
    got.into_iter().for_each(|one| *counts.entry(one).or_default() += 1);
    counts.retain(|_, count| *count != 0);
    counts
}

/// Asserts that the jobs were delivered in the order that the backend declares.
pub(crate) fn assert_in_line(actor: &Actor, served: &[Delivery], line: &Line) {
    if let Err(wrong) = line.judge(&actor.class(), &payloads(served)) {
        panic!("{wrong}");
    }
}

/// Returns the payloads of the deliveries, in the same order.
pub(crate) fn payloads(delivered: &[Delivery]) -> Vec<Bytes> {
    delivered.iter().map(|one| one.payload.clone()).collect()
}

/// Returns the payloads of listed jobs, in the order of the list.
pub(crate) fn listed(jobs: &[JobView]) -> Vec<Bytes> {
    jobs.iter().map(|one| one.payload.clone()).collect()
}

/// Returns `count` different payloads: `job 0`, `job 1` and so on.
pub(crate) fn numbered(count: usize) -> Vec<Bytes> {
    (0..count).map(|index| Bytes::from(format!("job {index}"))).collect()
}

/// Returns the recorded reason why a job was buried.
pub(crate) fn reason(view: &JobView) -> &str {
    match &view.detail {
        StateDetail::Dead { reason, .. } => reason,
        other => panic!("not dead: {other:?}"),
    }
}

pub(crate) fn id(text: &str) -> JobId {
    JobId::new(text).expect("cases use valid job ids")
}

pub(crate) fn key(text: &str) -> UniqueKey {
    UniqueKey::new(text).expect("cases use valid unique keys")
}

pub(crate) fn token(text: &str) -> PushToken {
    PushToken::new(text).expect("cases use valid push tokens")
}

pub(crate) fn duplicate(existing: &JobId, by: DuplicateOf) -> Pushed {
    Pushed::Duplicate { existing: existing.clone(), by }
}

pub(crate) fn retry_after(after: Duration) -> Disposition {
    Disposition::Retry { after, error: "it failed".to_owned() }
}

pub(crate) fn retry_now() -> Disposition {
    retry_after(Duration::ZERO)
}

pub(crate) fn postpone(after: Duration) -> Disposition {
    Disposition::Postpone { after }
}

/// Returns the option `max_attempts` with the value `most`, which must not be 0.
pub(crate) fn attempts(most: u16) -> NonZeroU16 {
    NonZeroU16::new(most).expect("cases allow one attempt at least")
}

/// A job with every option but a delay, a kept result and a leader.
pub(crate) fn full_job(name: &'static str) -> NewJob {
    NewJob::new(name)
        .priority(Priority::HIGHEST)
        .unique(key(name))
        .expires_in(HELD)
        .id(id(name))
        .header("name", "value")
        .lease(2 * HELD)
        .max_attempts(attempts(7))
}

/// A job without options, and one with the options of [`full_job`] that the backend has,
/// but without a lease of its own, so that a case can let its lease expire.
pub(crate) fn plain_and_full(actor: &Actor) -> [NewJob; 2] {
    let mut full = full_job("full");
    full.lease = None;
    [NewJob::new("plain"), actor.class().fit(full)]
}

pub(crate) fn dead(error: &str) -> Disposition {
    Disposition::Dead { error: error.to_owned() }
}

/// Each disposition of a job without a result. A job that comes back does so after `after`.
pub(crate) fn every_disposition(after: Duration) -> [Disposition; 6] {
    [
        Disposition::Done,
        Disposition::Discard,
        Disposition::GiveBack,
        retry_after(after),
        postpone(after),
        dead("never"),
    ]
}
