//! Why a worker did not start, or stopped before it was asked to.

use std::io;

use relq_core::QueueName;

use crate::Failure;

/// A setting is invalid. The worker sent nothing to the queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{setting} {reason}")]
pub struct InvalidSetting {
    setting: &'static str,
    reason: String,
}

impl InvalidSetting {
    pub(crate) fn new(setting: &'static str, reason: impl Into<String>) -> Self {
        Self { setting, reason: reason.into() }
    }
}

/// Why a worker did not start, or stopped before it was asked to.
///
/// ```
/// use relq_worker::WorkerError;
///
/// /// The exit code for a service manager: whether a restart may help.
/// fn exit_code(error: &WorkerError) -> u8 {
///     match error {
///         WorkerError::Setting(_) => 2, // the program is wrong
///         WorkerError::Claim(cause) | WorkerError::Store(cause) => {
///             eprintln!("{}", cause.full_message());
///             1 // an operator must repair the store
///         }
///         _ => 1,
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A setting is invalid.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A claim failed, and a retry cannot help. For example, the password is wrong, the
    /// store does not belong to relq, or the backend refuses the lease.
    ///
    /// Once a claim has succeeded, such an error is retried for a while, because an
    /// operator may repair the cause.
    #[error("the worker cannot claim from this queue")]
    Claim(#[source] relq_core::Error),
    /// The store refused a settlement, heartbeat or recovery for so long that the
    /// worker gave up. A retry cannot help. If settlements or heartbeats were refused, the
    /// worker stopped hard, because no result of a handler could be stored.
    #[error("the store refuses a call that the worker needs")]
    Store(#[source] relq_core::Error),
    /// One of several queues ended the worker: its store refused a claim or another call.
    /// The other queues stopped gracefully.
    #[error("the queue {queue} has ended the worker")]
    Queue {
        /// The name of the queue in the list of the worker.
        queue: QueueName,
        /// The error of the queue: [`WorkerError::Claim`] or [`WorkerError::Store`].
        source: Box<WorkerError>,
    },
    /// The queue is paused, so it does not become empty. This ends
    /// [`run_until_empty`](crate::Worker::run_until_empty). Jobs that the worker held
    /// are settled.
    #[error("the queue is paused")]
    Paused,
    /// The handler will never be ready for jobs again: a service of tower has failed in
    /// its `poll_ready`. The worker stopped hard. Start the process again.
    #[error("the handler cannot become ready for jobs: {0}")]
    NotReady(Failure),
    /// The thread for heartbeats, or its runtime, cannot be started.
    #[error("the heartbeat thread cannot be started")]
    Heartbeat(#[source] io::Error),
    /// The heartbeat or the reaper ended by itself: the backend panicked, or the
    /// runtime was shut down. The worker stopped hard, because without them it would
    /// lose jobs or leave jobs of dead workers waiting.
    #[error("the {0} has died")]
    Died(&'static str),
    /// The handlers for SIGINT and SIGTERM cannot be installed.
    #[error("signals cannot be handled")]
    Signals(#[source] io::Error),
}
