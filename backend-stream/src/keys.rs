//! The keys of a queue, and what is in them.
//!
//! ```text
//!  normal     STREAM  Q itself: jobs of normal priority, ready and leased
//!  urgent     STREAM  the same of the priority above
//!  patient    STREAM  the same of the priority below
//!  leased     ZSET    lease -> end (ms): jobs in the hands of workers
//! ```
//!
//! An entry has one field, `job`. It stays where it is from its push until its job ends
//! or fails; the group `relq` of each stream says how far it was read, and of what was
//! read who holds it:
//!
//! ```text
//!  after the last that was read   never delivered
//!  pending, consumer `ready`      came back, or was heard by a doorbell; its count of
//!                                 deliveries is that of the next
//!  pending, consumer `leased`     in the hands of a worker, with a lease in `leased`
//! ```
//!
//! All else is the shelf's ([`queue_redis::shelf`]). The streams of other priorities are
//! there only while something is in them.

use queue_core::QueueName;
use queue_redis::{KeyPrefix, shelf::ShelfKeys};

/// The group that reads a queue's streams.
pub(crate) const GROUP: &str = "relq";

/// Its consumer of what is ready though it was read.
pub(crate) const READY: &str = "ready";

/// Its consumer of what is leased.
pub(crate) const LEASED: &str = "leased";

/// A stream of a queue, by the letter that stands for it in a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Urgent,
    Normal,
    Patient,
}

impl Level {
    /// All of them, in the order in which they are served.
    pub(crate) const ALL: [Self; 3] = [Self::Urgent, Self::Normal, Self::Patient];

    pub(crate) fn letter(self) -> &'static str {
        match self {
            Self::Urgent => "u",
            Self::Normal => "n",
            Self::Patient => "p",
        }
    }

    pub(crate) fn by_letter(letter: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.letter() == letter)
    }
}

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) queue: QueueName,
    pub(crate) shelf: ShelfKeys,
    pub(crate) normal: String,
    pub(crate) urgent: String,
    pub(crate) patient: String,
    pub(crate) leased: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue.clone());
        Self {
            queue,
            shelf: ShelfKeys::new(&prefix),
            normal: prefix.producer(),
            urgent: prefix.part("urgent"),
            patient: prefix.part("patient"),
            leased: prefix.part("leased"),
        }
    }

    /// Those that `pattern.lua` binds, in its order.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.normal, &self.urgent, &self.patient, &self.leased]
            .map(String::clone)
            .into()
    }

    pub(crate) fn stream(&self, level: Level) -> &str {
        match level {
            Level::Urgent => &self.urgent,
            Level::Normal => &self.normal,
            Level::Patient => &self.patient,
        }
    }
}
