//! Why a worker did not start, or stopped before it was asked to.

use std::io;

/// A setting that makes no sense. Nothing was sent to the queue.
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
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A setting makes no sense.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// A claim failed in a way that no retry mends: wrong password, a store that is not
    /// relq's, a lease that the backend refuses.
    ///
    /// Once a claim has succeeded, such an error is retried for a while, because an
    /// operator may mend what broke.
    #[error("the worker cannot claim from this queue")]
    Claim(#[source] relq_core::Error),
    /// A settlement, heartbeat or recovery was refused, for so long that the worker gave
    /// up, in a way that no retry mends.
    #[error("the store refuses what the worker needs")]
    Store(#[source] relq_core::Error),
    /// The queue is paused, so it does not become empty: the end of
    /// [`run_until_empty`](crate::Worker::run_until_empty). What was held is settled.
    #[error("the queue is paused")]
    Paused,
    /// The thread for heartbeats, or its runtime, cannot be started.
    #[error("the heartbeat thread cannot be started")]
    Heartbeat(#[source] io::Error),
    /// The heartbeat or the reaper ended by itself, most likely by a panic of the
    /// backend's. The worker stopped hard: without them it would lose jobs or keep
    /// others waiting. Or the runtime that it ran on was shut down.
    #[error("the {0} has died")]
    Died(&'static str),
    /// The handlers for SIGINT and SIGTERM cannot be installed.
    #[error("signals cannot be handled")]
    Signals(#[source] io::Error),
}
