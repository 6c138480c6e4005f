//! A job knows when it was pushed, and the stats how long the oldest ready job has been
//! waiting (R27).

mod ages;
mod push_times;

use std::time::Duration;

use relq_core::{Stats, environment::Timestamp};

use crate::harness::store::Store;

/// How far a recorded time may be from the real one. Cases run in virtual time, but the
/// clock of an embedded store runs on meanwhile.
pub(crate) const TOLERANCE: Duration = Duration::from_secs(5);

/// Asserts that a job was pushed at `at`, by the store's clock.
#[track_caller]
pub(crate) fn assert_pushed_at(
    what: &str,
    enqueued_at: Option<Timestamp>,
    at: Timestamp,
) {
    let found =
        enqueued_at.unwrap_or_else(|| panic!("R27: {what} has no time of push"));
    let wrong = found.since(at).max(at.since(found));
    assert!(
        wrong <= TOLERANCE,
        "R27: {what} was pushed at {at:?} and says {found:?}, {wrong:?} away"
    );
}

/// Asserts that the oldest ready job has been waiting for `wanted`.
#[track_caller]
pub(crate) fn assert_oldest(stats: &Stats, wanted: Duration) {
    let age = stats.oldest_ready_age;
    let age = age.unwrap_or_else(|| panic!("R27: no age of the oldest of {stats:?}"));
    assert!(
        age >= wanted && age <= wanted + TOLERANCE,
        "R27: the oldest ready job has been waiting for {wanted:?}, not {age:?}"
    );
}

/// The time by the store's clock.
pub(crate) fn now(store: &Store) -> Timestamp {
    store.environment().clock().now()
}
