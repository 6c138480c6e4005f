//! The position of a job among the ready jobs.

use relq_core::{Priority, batch::BatchPriority};

/// The moment of an event: the number of the operation, and an index within it.
pub(crate) type Moment = (u32, usize);

/// Later than every other moment.
pub(crate) const LAST: Moment = (u32::MAX, 0);

/// A position among the ready jobs of one priority (R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadyPosition {
    /// The job came back. Jobs of one return and one claim keep their order.
    Front { back: Moment, claim: u32, index: usize, until: u64 },
    /// The job became ready at some moment between `from` and `to`.
    Back { from: Moment, to: Moment, due: Option<u64> },
}

/// A job that is ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) priority: Priority,
    pub(crate) position: ReadyPosition,
    /// The rank of the batch whose piece the job is.
    pub(crate) batch: Option<BatchRank>,
}

/// The rank of a batch among those that a claim takes from (B4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRank {
    pub(crate) number: u8,
    pub(crate) priority: BatchPriority,
    pub(crate) born: u32,
}

impl Ready {
    /// Whether the batches of two jobs decide which of them comes first (B4).
    pub(crate) fn is_first_by_batch(&self, other: &Self) -> Option<bool> {
        match (self.batch, other.batch) {
            (None, None) => None,
            (Some(one), Some(other)) if one.number == other.number => None,
            (Some(one), Some(other)) if one.priority == other.priority => {
                Some(one.born < other.born)
            }
            (Some(one), Some(other)) => Some(one.priority > other.priority),
            (one, _) => Some(one.is_none()),
        }
    }
}

impl ReadyPosition {
    /// The position of a job that was pushed ready.
    pub(crate) fn fresh(at: Moment) -> Self {
        Self::Back { from: at, to: at, due: None }
    }

    /// Whether the job was pushed ready and has never been delivered.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Self::Back { from, to, due: None } if from == to)
    }

    /// Whether this job must be delivered before the other one.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Front { .. }, Self::Back { .. }) => true,
            (Self::Back { .. }, Self::Front { .. }) => false,
            (
                Self::Front { back, claim, index, until },
                Self::Front { back: b, claim: c, index: i, until: u },
            ) => back == b && claim == c && index < i && until <= u,
            (
                Self::Back { from, to, due },
                Self::Back { from: other_from, due: other_due, .. },
            ) => {
                let fell_due_together = from == other_from;
                to < other_from
                    || (fell_due_together
                        && due.zip(*other_due).is_some_and(|(a, b)| a < b))
            }
        }
    }
}
