//! The status of a batch.

use std::{fmt, num::NonZeroU32};

use bytes::Bytes;

use super::{BatchId, BatchPriority};
use crate::environment::Timestamp;

/// The state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchState {
    /// Pieces can be added, and workers already run them.
    Open,
    /// No more pieces can be added; the batch completes when the last piece has ended.
    Sealed,
    /// The batch was cancelled; it completes when the last leased piece has ended.
    Cancelling,
    /// The batch has ended; this state is final.
    Completed(BatchOutcome),
}

/// How a batch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchOutcome {
    /// No piece failed.
    Done,
    /// At least one piece failed and is among the dead letters (B8).
    Failed,
    /// The batch was cancelled before it completed.
    Cancelled,
}

impl BatchState {
    /// Whether the batch has ended.
    pub fn is_completed(self) -> bool {
        matches!(self, Self::Completed(_))
    }

    /// The state in one word: `open`, `sealed`, `cancelling`, or the outcome: `done`,
    /// `failed`, `cancelled`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Sealed => "sealed",
            Self::Cancelling => "cancelling",
            Self::Completed(BatchOutcome::Done) => "done",
            Self::Completed(BatchOutcome::Failed) => "failed",
            Self::Completed(BatchOutcome::Cancelled) => "cancelled",
        }
    }

    /// Returns the state whose word is `word`, as [`as_str`](Self::as_str) returns it.
    /// Returns `None` for any other word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    const ALL: [Self; 6] = [
        Self::Open,
        Self::Sealed,
        Self::Cancelling,
        Self::Completed(BatchOutcome::Done),
        Self::Completed(BatchOutcome::Failed),
        Self::Completed(BatchOutcome::Cancelled),
    ];
}

impl fmt::Display for BatchState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state, the options and the piece counts of a batch.
///
/// While no call is pending, `total = done + failed + dropped + leased + waiting` (B2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchStatus {
    /// The batch's identity.
    pub id: BatchId,
    /// The batch's state, such as open or completed.
    pub state: BatchState,
    /// The priority of the batch's pieces.
    pub priority: BatchPriority,
    /// How many of the batch's pieces may be leased at once; `None` means no limit.
    pub limit: Option<NonZeroU32>,
    /// The metadata that the caller gave at creation.
    pub metadata: Bytes,
    /// The number of pieces that were added to the batch, including those that have
    /// ended.
    pub total: u64,
    /// The number of pieces that workers settled as done.
    pub done: u64,
    /// The number of pieces that were buried, so that they became dead letters.
    pub failed: u64,
    /// The number of pieces that ended without success or failure: a worker discarded
    /// them, or they were cancelled.
    pub dropped: u64,
    /// The number of pieces that workers hold; the batch's limit applies to it (B3).
    pub leased: u64,
    /// The number of pieces that wait for a worker, or for their next attempt.
    pub waiting: u64,
    /// When the batch was created.
    pub created_at: Timestamp,
    /// When the batch was sealed; `None` while it is not sealed.
    pub sealed_at: Option<Timestamp>,
    /// When the batch completed; `None` while it has not completed.
    pub completed_at: Option<Timestamp>,
}

impl BatchStatus {
    /// The status of an open batch without pieces; a backend sets the other fields.
    pub fn new(id: BatchId, created_at: Timestamp) -> Self {
        Self {
            id,
            state: BatchState::Open,
            priority: BatchPriority::NORMAL,
            limit: None,
            metadata: Bytes::new(),
            total: 0,
            done: 0,
            failed: 0,
            dropped: 0,
            leased: 0,
            waiting: 0,
            created_at,
            sealed_at: None,
            completed_at: None,
        }
    }

    /// Returns the number of pieces that have ended: done, failed or dropped.
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.dropped
    }

    /// How the batch ended; `None` if it has not completed.
    pub fn outcome(&self) -> Option<BatchOutcome> {
        match self.state {
            BatchState::Completed(outcome) => Some(outcome),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_is_read_back_from_its_word() {
        for state in BatchState::ALL {
            assert_eq!(BatchState::from_word(state.as_str()), Some(state));
        }
        assert_eq!(BatchState::from_word("completed"), None);
    }
}
