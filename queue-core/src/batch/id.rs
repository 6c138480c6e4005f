//! The id and the priority of a batch. Both are checked when they are created.

use std::{fmt, str::FromStr, sync::Arc};

use crate::hash::fnv1a;
use crate::name::{InvalidName, check_text, checked_text};
use crate::{
    JobId, QueueName,
    environment::{Randomness, Timestamp},
};

checked_text! {
    /// The identity of a batch within its queue: 1 to 64 characters of
    /// `A-Z a-z 0-9 . _ -`.
    ///
    /// The caller makes the id before it creates the batch, so that it can repeat the
    /// call.
    BatchId, "the batch id", 64, |text| {
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            Ok(())
        } else {
            Err(InvalidName::new("the batch id", "may hold only A-Z a-z 0-9 . _ -"))
        }
    }
}

impl BatchId {
    /// Creates an id from 80 random bits, so that no other batch has it.
    pub fn random(randomness: &dyn Randomness) -> Self {
        Self(randomness.text(16).into())
    }

    /// Returns the id of the completion job of this batch in the batch's own queue (B5):
    /// `batch-ID-MS`. It contains the time `created_at` of the batch's creation, because a
    /// new batch can use the name again after this batch was removed.
    pub fn completion_job(&self, created_at: Timestamp) -> JobId {
        let id = format!("batch-{}-{}", self.0, created_at.unix_ms());
        JobId::new(id).expect("short, and without control characters")
    }

    /// Returns the id of the completion job of this batch in another queue (B5):
    /// `batch-ID-MS@HASH`. `HASH` is [`fnv1a`] of the name of the batch's own queue `from`,
    /// as 16 hexadecimal digits, because batches of other queues may have the same name and
    /// time of creation, and push to the same queue. If the batch's queue has several parts,
    /// `from` is the part that has the batch.
    pub fn completion_job_elsewhere(
        &self,
        created_at: Timestamp,
        from: &QueueName,
    ) -> JobId {
        let here = self.completion_job(created_at);
        let id = format!("{here}@{:016x}", fnv1a(from.as_str()));
        JobId::new(id).expect("short, and without control characters")
    }
}

/// The priority of a batch's pieces: 0 to 99. Pieces with a larger priority are
/// delivered sooner, as everywhere in relq.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BatchPriority(u8);

impl BatchPriority {
    /// The least urgent priority of a batch.
    pub const LOWEST: Self = Self(0);
    /// The default priority of a batch.
    pub const NORMAL: Self = Self(50);
    /// The most urgent priority of a batch.
    pub const HIGHEST: Self = Self(99);

    /// The batch priority of the given level, or `None` above 99.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= Self::HIGHEST.0 { Some(Self(level)) } else { None }
    }

    /// The priority as a number, 0 to 99.
    pub const fn level(self) -> u8 {
        self.0
    }
}

impl Default for BatchPriority {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Display for BatchPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_safe_in_keys_and_shells() {
        for good in ["a", "nightly.2026-11-20_7", &"x".repeat(64)] {
            assert_eq!(BatchId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a:b", "{a}", "a/b", "é", "a\n", &"x".repeat(65)] {
            BatchId::new(bad).unwrap_err();
        }
    }

    #[test]
    fn a_name_that_is_used_again_has_another_completion_job() {
        let batch = BatchId::new("nightly").unwrap();

        let at = |ms| batch.completion_job(Timestamp::from_unix_ms(ms));

        assert_eq!(at(7).as_str(), "batch-nightly-7");
        assert_ne!(at(7), at(8));
    }

    #[test]
    fn batches_of_two_queues_have_two_completion_jobs_elsewhere() {
        let longest = BatchId::new("b".repeat(BatchId::MAX_BYTES)).unwrap();
        let queue = |name| QueueName::new(name).unwrap();

        let of = |name| {
            let at = Timestamp::from_unix_ms(i64::MAX);
            longest.completion_job_elsewhere(at, &queue(name)).as_str().to_owned()
        };

        assert!(of("a").ends_with("@af63dc4c8601ec8c"), "{}", of("a"));
        assert_ne!(of("a"), of("b"));
    }

    #[test]
    fn priorities_end_at_99() {
        assert_eq!(BatchPriority::new(99), Some(BatchPriority::HIGHEST));
        assert_eq!(BatchPriority::new(100), None);
        assert!(BatchPriority::HIGHEST > BatchPriority::NORMAL);
    }
}
