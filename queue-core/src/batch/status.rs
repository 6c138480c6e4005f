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
    /// Cancelled; the batch completes when the last leased piece has ended.
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

    /// The state for a word that [`as_str`](Self::as_str) returns.
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

/// The status of a batch.
///
/// At rest `total = done + failed + dropped + leased + waiting` (B2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchStatus {
    /// The batch's identity.
    pub id: BatchId,
    /// The batch's state.
    pub state: BatchState,
    /// The priority of the batch's pieces.
    pub priority: BatchPriority,
    /// How many of the batch's pieces are leased at once at most; `None` is no limit.
    pub limit: Option<NonZeroU32>,
    /// The metadata that the caller gave at creation.
    pub metadata: Bytes,
    /// All pieces that were ever added.
    pub total: u64,
    /// Pieces that were settled as done.
    pub done: u64,
    /// Pieces that were buried.
    pub failed: u64,
    /// Pieces that ended without success or failure: discarded, or cancelled.
    pub dropped: u64,
    /// Pieces that workers hold: the slots in use.
    pub leased: u64,
    /// Pieces that wait for a worker, or for their next attempt.
    pub waiting: u64,
    /// When the batch was created.
    pub created_at: Timestamp,
    /// When the batch was sealed.
    pub sealed_at: Option<Timestamp>,
    /// When the batch completed.
    pub completed_at: Option<Timestamp>,
}

impl BatchStatus {
    /// The status of an open batch without pieces; a backend fills in the rest.
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

    /// The number of pieces that have ended, in any way.
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
