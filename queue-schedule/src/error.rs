//! Why a schedule is refused, cannot be read, or a scheduler does not start or ends.

use std::io;

use relq_core::schedule::ScheduleName;

/// Why a cron expression, an interval or a schedule is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSpec {
    /// The cron expression cannot be read.
    #[error("the cron expression {expression:?} cannot be read: {reason}")]
    Expression {
        /// The expression.
        expression: String,
        /// The reason.
        reason: String,
    },
    /// The cron expression matches no day of the calendar, as `0 0 30 2 *`.
    #[error("the cron expression {0:?} never ticks: no day matches it")]
    NeverTicks(String),
    /// No time zone has this name.
    #[error(
        "there is no time zone {0:?}: give a name of the IANA database, such as \
         Europe/Berlin"
    )]
    Zone(String),
    /// The interval is shorter than a second, longer than a hundred years, or not whole
    /// milliseconds.
    #[error("the interval {0}")]
    Interval(&'static str),
    /// The job has an id of its own, so that the second tick would be a duplicate.
    #[error(
        "the job of a schedule must not have an id, because each tick pushes another job"
    )]
    JobId,
    /// The job follows another one, which a later tick would not find.
    #[error(
        "the job of a schedule must not follow another one, because a later tick would \
         not find it"
    )]
    JobToFollow,
}

/// Why a scheduler cannot read the definition of a stored schedule. It leaves that
/// schedule alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableDefinition {
    /// The definition is not one of this package, or has a field that this version does
    /// not know.
    #[error("it is not a definition that this version of relq can read: {0}")]
    Format(String),
    /// A newer version of this package wrote the definition.
    #[error(
        "its definition has the version {0}, and this scheduler reads versions 1 \
         and 2: update the scheduler"
    )]
    Version(u64),
    /// The definition can be read, but what it says is refused here. For example, the
    /// time zone is not in the database of this machine.
    #[error(transparent)]
    Invalid(#[from] InvalidSpec),
}

/// Why a scheduler did not start, or ended before it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The queue has no schedules: its backend has none, or it consists of several
    /// partitions.
    #[error("{0}")]
    NoSchedules(String),
    /// The time between two looks is zero, or longer than half of
    /// [`MISSED_AFTER`](crate::MISSED_AFTER).
    #[error("the time between two looks must be above zero and at most 30 seconds")]
    LookEvery,
    /// The backend cannot store one of the schedules: its definition is too large, or
    /// its job has an option that the backend does not support.
    #[error("the schedule {name} is refused")]
    Refused {
        /// The name of the schedule.
        name: ScheduleName,
        /// The error of the backend.
        source: relq_core::Error,
    },
    /// The store refuses a call, and a retry cannot help: for example, the password is
    /// wrong, or another file has replaced that of SQLite. Start the process again when a
    /// person has repaired the cause.
    ///
    /// Once a call has succeeded, such an error is retried
    /// [for a while](crate::Scheduler::give_up_after).
    #[error("the store refuses a call that the scheduler needs")]
    Store(#[source] relq_core::Error),
    /// The handlers for SIGINT and SIGTERM cannot be installed.
    #[error("signals cannot be handled")]
    Signals(#[source] io::Error),
}
