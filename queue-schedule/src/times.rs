//! The moments at which a schedule ticks: those of a cron expression, or an interval.

use std::fmt;

use relq_core::environment::Timestamp;

use crate::{Cron, Every};

/// The moments at which a schedule ticks.
#[derive(Debug, Clone, PartialEq)]
pub enum Times {
    /// The local times that match a cron expression.
    Cron(Cron),
    /// One moment in each interval.
    Every(Every),
}

impl Times {
    /// The first moment after `after`. `None` if there is none in the range of the
    /// calendar.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(cron) => cron.next_after(after),
            Self::Every(every) => every.next_after(after),
        }
    }
}

impl From<Cron> for Times {
    fn from(cron: Cron) -> Self {
        Self::Cron(cron)
    }
}

impl From<Every> for Times {
    fn from(every: Every) -> Self {
        Self::Every(every)
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(cron) => cron.fmt(f),
            Self::Every(every) => every.fmt(f),
        }
    }
}
