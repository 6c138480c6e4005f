//! The keys of a queue, and what is in them.
//!
//! ```text
//!  normal     STREAM  Q itself: jobs of normal priority, ready and leased
//!  urgent     STREAM  the same of the priority above
//!  patient    STREAM  the same of the priority below
//!  leased     ZSET    lease -> end (ms): jobs in the hands of workers
//!  batch:…            what batches keep: `lua/batch/records.lua`
//!  marker     STRING  which backend the queue is of: relq-redis's `marker.rs`
//! ```
//!
//! An entry has one field, `job`. It stays where it is from its push until its job ends
//! or fails; the group `relq` of each stream says how far it was read, and of what was
//! read who holds it:
//!
//! ```text
//!  after the last that was read   never delivered
//!  pending, consumer `ready`      came back, or was heard by a notifier; its count of
//!                                 deliveries is that of the next
//!  pending, consumer `leased`     in the hands of a worker, with a lease in `leased`
//! ```
//!
//! All else is the bookkeeping's ([`relq_redis::bookkeeping`]). The streams of other priorities are
//! there only while something is in them.

use relq_core::{BatchId, QueueName};
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The group that reads a queue's streams.
pub(crate) const GROUP: &str = "relq";

/// Its consumer of what is ready though it was read.
pub(crate) const READY: &str = "ready";

/// Its consumer of what is leased.
pub(crate) const LEASED: &str = "leased";

/// A stream of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stream {
    Urgent,
    Normal,
    Patient,
    /// The pieces of a batch.
    Pieces(BatchId),
}

impl Stream {
    /// Those of jobs that are of no batch, in the order in which they are served.
    pub(crate) const OF_JOBS: [Self; 3] = [Self::Urgent, Self::Normal, Self::Patient];

    /// What stands for it in a lease.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Urgent => "u".to_owned(),
            Self::Normal => "n".to_owned(),
            Self::Patient => "p".to_owned(),
            Self::Pieces(batch) => format!("b:{batch}"),
        }
    }

    pub(crate) fn by_word(word: &str) -> Option<Self> {
        if let Some(batch) = word.strip_prefix("b:") {
            return BatchId::new(batch).ok().map(Self::Pieces);
        }
        Self::OF_JOBS.into_iter().find(|stream| stream.word() == word)
    }
}

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) queue: QueueName,
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) normal: String,
    pub(crate) urgent: String,
    pub(crate) patient: String,
    pub(crate) leased: String,
    /// What the names of all keys of batches begin with.
    pub(crate) batches: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue.clone());
        Self {
            queue,
            bookkeeping: BookkeepingKeys::new(&prefix),
            normal: prefix.producer(),
            urgent: prefix.part("urgent"),
            patient: prefix.part("patient"),
            leased: prefix.part("leased"),
            batches: prefix.part("batch"),
        }
    }

    /// Those that `pattern.lua` binds, in its order.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.normal, &self.urgent, &self.patient, &self.leased, &self.batches]
            .map(String::clone)
            .into()
    }

    pub(crate) fn stream(&self, stream: &Stream) -> String {
        match stream {
            Stream::Urgent => self.urgent.clone(),
            Stream::Normal => self.normal.clone(),
            Stream::Patient => self.patient.clone(),
            Stream::Pieces(batch) => format!("{}:pieces:{batch}", self.batches),
        }
    }

    /// The batches whose completion is to be told to another queue.
    pub(crate) fn outbox(&self) -> String {
        format!("{}:outbox", self.batches)
    }

    /// The last completion of a batch, for who waits for one.
    pub(crate) fn told(&self) -> String {
        format!("{}:told", self.batches)
    }

    /// The batches that have not completed, by their rank.
    pub(crate) fn running(&self) -> String {
        format!("{}:running", self.batches)
    }
}
