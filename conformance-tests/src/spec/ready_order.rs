//! The position of a job among the ready jobs.

use relq_core::{Priority, batch::BatchPriority};

/// The moment of an event: the number of the operation, and an index within it.
pub(crate) type Moment = (u32, usize);

/// A moment that is later than every event of a sequence.
pub(crate) const LAST: Moment = (u32::MAX, 0);

/// A position among the ready jobs of one priority (R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadyPosition {
    /// The job returned to the front. Jobs that were claimed and returned together keep
    /// their order.
    Front { back: Moment, claim: u32, index: usize, until: u64 },
    /// The job became ready at the back, at some moment between `from` and `to`.
    Back { from: Moment, to: Moment, due: Option<u64> },
    /// The job was released at the back by the end of the job `leader`, in the operation
    /// `step`. Followers of one leader have the order of their `place` (R30).
    Released { step: u32, leader: usize, place: usize },
}

/// A job that is ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) priority: Priority,
    pub(crate) position: ReadyPosition,
    /// The rank of the job's batch. `None` if the job is not a piece of a batch.
    pub(crate) batch: Option<BatchRank>,
}

/// The values by which a claim orders the batches (B4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchRank {
    pub(crate) number: u8,
    pub(crate) priority: BatchPriority,
    pub(crate) born: u32,
}

impl Ready {
    /// Whether this job comes first because of the batches of both jobs (B4). `None` if
    /// the batches do not decide.
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
    /// Returns the position of a job that became ready at once when it was pushed at
    /// the moment `at`.
    pub(crate) fn fresh(at: Moment) -> Self {
        Self::Back { from: at, to: at, due: None }
    }

    /// Whether the job was ready from its push on and was never delivered.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Self::Back { from, to, due: None } if from == to)
    }

    /// Whether a job at this position is certainly delivered before one at the other.
    pub(crate) fn is_before(&self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::Front { back, claim, index, until },
                Self::Front { back: b, claim: c, index: i, until: u },
            ) => back == b && claim == c && index < i && until <= u,
            (Self::Front { .. }, _) => true,
            (_, Self::Front { .. }) => false,
            (
                Self::Released { step, leader, place },
                Self::Released { step: s, leader: l, place: p },
            ) if step == s && leader == l => place < p,
            (one, other) => {
                let (from, to, due) = one.moments();
                let (other_from, _, other_due) = other.moments();
                let fell_due_together = from == other_from;
                to < other_from
                    || (fell_due_together
                        && due.zip(other_due).is_some_and(|(a, b)| a < b))
            }
        }
    }

    /// The moments between which the job became ready, and its due time if it had one.
    fn moments(&self) -> (Moment, Moment, Option<u64>) {
        match *self {
            Self::Front { back, .. } => (back, back, None),
            Self::Back { from, to, due } => (from, to, due),
            Self::Released { step, .. } => ((step, 0), (step, usize::MAX), None),
        }
    }
}
