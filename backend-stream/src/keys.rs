//! The keys of a queue, and what each one holds.
//!
//! ```text
//!  normal     STREAM  Q itself: jobs of normal priority, ready and leased
//!  urgent     STREAM  the same for the priority above
//!  patient    STREAM  the same for the priority below
//!  leased     ZSET    lease -> end (ms): jobs that workers hold
//!  batch:…            the keys of batches: see `lua/batch/records.lua`
//!  marker     STRING  the queue's backend: see relq-redis's `marker.rs`
//! ```
//!
//! An entry has one field, `job`. It stays in its place from its push until its job
//! ends or fails. The group `relq` of each stream knows up to which entry the stream
//! was read, and which consumer holds each entry that was read:
//!
//! ```text
//!  after the last read entry      never delivered
//!  pending, consumer `ready`      was returned, or was read by a notifier; its
//!                                 delivery count already counts the next one
//!  pending, consumer `leased`     held by a worker, with a lease in `leased`
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]). The streams
//! of other priorities exist only while they hold an entry.

use relq_core::{QueueName, batch::BatchId};
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The name of the consumer group with which relq reads a queue's streams.
pub(crate) const GROUP: &str = "relq";

/// The consumer that holds entries which were read from the stream but are still ready.
pub(crate) const READY: &str = "ready";

/// The consumer that holds the entries of leased jobs.
pub(crate) const LEASED: &str = "leased";

/// One of the streams of a queue. It holds the jobs of a priority or of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stream {
    Urgent,
    Normal,
    Patient,
    /// The stream of the ready and leased pieces of this batch.
    Pieces(BatchId),
}

impl Stream {
    /// The streams of jobs that belong to no batch, the most urgent first.
    pub(crate) const OF_JOBS: [Self; 3] = [Self::Urgent, Self::Normal, Self::Patient];

    /// The text that names the stream inside the name of a lease: a letter for each
    /// priority, or `b:` and the id of the batch.
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
    /// The prefix of all keys of batches.
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

    /// The keys that `pattern.lua` expects, in the order in which it binds them.
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

    /// The key of a stream with one entry, which names the batch that completed last.
    /// Callers that wait for a batch block on it.
    pub(crate) fn told(&self) -> String {
        format!("{}:told", self.batches)
    }

    /// The key of the sorted set of batches that have not completed, by rank.
    pub(crate) fn running(&self) -> String {
        format!("{}:running", self.batches)
    }
}
