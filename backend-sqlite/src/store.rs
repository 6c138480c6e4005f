//! The context of a call: a connection inside a transaction, and the time of the
//! transaction.

use std::{cell::Cell, time::Duration};

use relq_core::{
    environment::{Randomness, Timestamp},
    limits::DEDUPLICATION_WINDOW,
};
use rusqlite::Connection;

use crate::steps::Steps;

/// How long ids and results of pushes are remembered (R4), and cancelled leases after
/// they would have ended.
pub(crate) const WINDOW: Duration = DEDUPLICATION_WINDOW;

/// One queue of the file, inside one transaction.
pub(crate) struct Store<'a> {
    pub(crate) conn: &'a Connection,
    /// The queue's key in the file.
    pub(crate) queue: i64,
    /// The time of the store's clock, read once after the transaction began (R18).
    pub(crate) now: Timestamp,
    pub(crate) random: &'a dyn Randomness,
    /// The most jobs of one page of a call that goes on in later transactions.
    pub(crate) page: u32,
    /// Set if waiting claims must look again.
    pub(crate) wakes: &'a Cell<bool>,
    pub(crate) steps: &'a Steps,
}

impl Store<'_> {
    /// Requests that waiting claims are woken once the transaction is committed.
    pub(crate) fn wake_claims(&self) {
        self.wakes.set(true);
    }

    /// Milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now.unix_ms()
    }

    /// `duration` from now, in milliseconds since the Unix epoch.
    pub(crate) fn ms_after(&self, duration: Duration) -> i64 {
        self.now_ms().saturating_add(ms(duration))
    }

    /// How long until that time; zero if it has passed.
    pub(crate) fn until(&self, ms: i64) -> Duration {
        Timestamp::from_unix_ms(ms).since(self.now)
    }
}

/// Milliseconds, rounded up, so that no job is due or expires early (R14).
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
