//! Why a job of a kind was not pushed.

use relq_core::{
    QueueName,
    error::{Effect, InvalidName},
};

/// Why a job of a kind was not pushed, or has no handle on its result.
///
/// ```
/// use relq_core::error::Effect;
/// use relq_worker::EnqueueError;
///
/// /// Whether certainly no job of the call is stored.
/// fn stored_nothing(error: &EnqueueError) -> bool {
///     match error {
///         EnqueueError::Push { stored, source } => {
///             *stored == 0 && source.effect() == Effect::No
///         }
///         _ => true, // it was refused before anything was sent
///     }
/// }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnqueueError {
    /// The value cannot be written as JSON. Nothing was pushed.
    #[error("a job of the kind {kind:?} cannot be written as JSON")]
    Encode {
        /// The kind of the job.
        kind: &'static str,
        /// The error of the encoder.
        source: serde_json::Error,
    },
    /// The unique key of the job breaks a rule. Nothing was pushed.
    #[error("a job of the kind {kind:?} has an invalid unique text")]
    UniqueKey {
        /// The kind of the job.
        kind: &'static str,
        /// The rule that the key breaks.
        source: InvalidName,
    },
    /// The producer does not have the queue of the kind. Nothing was pushed.
    #[error(
        "jobs of the kind {kind:?} go to the queue {queue:?}, which this producer does \
         not have (it has: the default queue{}); add it with Producer::queue",
        after_commas(known)
    )]
    UnknownQueue {
        /// The kind of the job.
        kind: &'static str,
        /// The queue that the kind names.
        queue: &'static str,
        /// The names of the queues that the producer has beside its default queue.
        known: Vec<QueueName>,
    },
    /// The queue refused the jobs, or its reply was lost.
    #[error(
        "jobs cannot be pushed; {stored} of them are certainly stored{}",
        and_perhaps_others(source)
    )]
    Push {
        /// The number of jobs that are certainly stored: the first ones of those given to
        /// the call. It is zero if all jobs fit into one call to the store.
        stored: usize,
        /// Why the call failed, whether it may have taken effect, and whether it may be
        /// repeated.
        source: relq_core::Error,
    },
    /// The queue of the kind keeps no results, so there is no handle on its jobs.
    #[error("the queue of the kind keeps no results")]
    Results(#[source] relq_core::Error),
}

fn after_commas(names: &[QueueName]) -> String {
    names.iter().map(|name| format!(", {:?}", name.as_str())).collect()
}

fn and_perhaps_others(error: &relq_core::Error) -> &'static str {
    if error.effect() == Effect::No { "" } else { ", and others may be" }
}
