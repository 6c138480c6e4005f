//! The context of a call: a connection inside a transaction, and the time of the
//! transaction.

use std::{
    cell::{Cell, RefCell},
    ops::Range,
    time::Duration,
};

use relq_core::{
    QueueName,
    environment::{Randomness, Timestamp},
    limits::{DEDUPLICATION_WINDOW, MAX_DURATION},
};
use rusqlite::Connection;

use crate::steps::Steps;
use crate::wake::Wakes;

/// How long the ids and results of pushes are remembered (R4), and how long a cancelled
/// lease is remembered after its end.
pub(crate) const WINDOW: Duration = DEDUPLICATION_WINDOW;

/// The context of a call: one queue of the file, inside one transaction.
pub(crate) struct Store<'a> {
    pub(crate) conn: &'a Connection,
    /// The queue's key in the file.
    pub(crate) queue: i64,
    /// The time of the store's clock, read once after the transaction began (R18).
    pub(crate) now: Timestamp,
    pub(crate) random: &'a dyn Randomness,
    /// The maximum number of jobs that one transaction of a long call handles.
    pub(crate) page: u32,
    /// How many calls share the transaction.
    pub(crate) calls: u32,
    /// Turns of the queue that this transaction has reserved and not used.
    pub(crate) turns: RefCell<Range<i64>>,
    /// How many waiting pieces of cancelled batches this transaction has dropped, up to a
    /// page. Many calls of a transaction may end pieces of such a batch.
    pub(crate) dropped: Cell<u32>,
    /// The waiting calls that the commit of this transaction wakes.
    pub(crate) wakes: &'a Wakes,
    pub(crate) steps: &'a Steps,
}

impl Store<'_> {
    /// Requests that waiting claims are woken once this transaction is committed. A call
    /// does this if it made jobs available.
    pub(crate) fn wake_claims(&self) {
        self.wakes.claims.set(true);
    }

    /// Requests the same for the claims of another queue of the file.
    pub(crate) fn wake_claims_of(&self, queue: QueueName) {
        self.wakes.other_queues.borrow_mut().push(queue);
    }

    /// Requests that the calls that wait for the end of a job are woken once this
    /// transaction is committed.
    pub(crate) fn wake_waiters_of(&self, job: &str) {
        self.wakes.ended.borrow_mut().push(job.to_owned());
    }

    /// Requests that all calls that wait for the end of a job are woken once this
    /// transaction is committed.
    pub(crate) fn wake_waiters_of_all(&self) {
        self.wakes.all_ended.set(true);
    }

    /// The time of the transaction in milliseconds since the Unix epoch.
    pub(crate) fn now_ms(&self) -> i64 {
        self.now.unix_ms()
    }

    /// Returns the time `duration` after now, in milliseconds since the Unix epoch. A
    /// duration above [`MAX_DURATION`] is reduced to it.
    pub(crate) fn ms_after(&self, duration: Duration) -> i64 {
        self.now_ms().saturating_add(ms(duration.min(MAX_DURATION)))
    }

    /// Returns how long it is until the given time (ms since the Unix epoch). Zero if
    /// that time has passed.
    pub(crate) fn until(&self, ms: i64) -> Duration {
        Timestamp::from_unix_ms(ms).since(self.now)
    }

    /// Returns how long ago the given time (ms since the Unix epoch) was. Zero if it is
    /// in the future.
    pub(crate) fn age_of(&self, ms: i64) -> Duration {
        self.now.since(Timestamp::from_unix_ms(ms))
    }
}

/// Converts a duration to milliseconds. It rounds up, so that no job becomes due or
/// expires too early (R14).
pub(crate) fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}
