//! A place among the ready jobs.

use relq_core::Priority;

/// When something happened: a count of operations, and a place within one.
pub(crate) type Moment = (u32, usize);

/// After all that can happen.
pub(crate) const LAST: Moment = (u32::MAX, 0);

/// A place among the ready jobs of one priority (R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadyPosition {
    /// It came back. Those of one return and one claim keep their order.
    Front { back: Moment, claim: u32, index: usize, until: u64 },
    /// It became ready somewhere between the two.
    Back { from: Moment, to: Moment, due: Option<u64> },
}

/// A job that is ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ready {
    pub(crate) priority: Priority,
    pub(crate) position: ReadyPosition,
}

impl ReadyPosition {
    /// Of what is pushed, and ready at once.
    pub(crate) fn fresh(at: Moment) -> Self {
        Self::Back { from: at, to: at, due: None }
    }

    /// Whether it was pushed to be ready at once, and never delivered.
    pub(crate) fn is_fresh(&self) -> bool {
        matches!(self, Self::Back { from, to, due: None } if from == to)
    }

    /// Whether this one is surely before the other.
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
