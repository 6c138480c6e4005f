//! The trait of a type whose values are jobs of one kind.

use std::time::Duration;

use relq_core::{
    NewJob,
    unique::{OnDuplicate, UniqueKey},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{EnqueueError, KIND_HEADER, RetryPolicy, kinds::name::assert_valid};

/// A type of the application whose values are jobs of one kind.
///
/// Only [`KIND`](Self::KIND) must be set. Everything else that the jobs of a kind have in
/// common can be set here too, so that each producer pushes them with the same options,
/// and each worker treats them alike.
///
/// ```
/// use std::{num::NonZeroU16, time::Duration};
/// use relq_core::{NewJob, Priority};
/// use relq_worker::{EnqueueError, Job};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct ResetPassword { user: u64 }
///
/// impl Job for ResetPassword {
///     const KIND: &'static str = "reset-password";
///
///     fn options(&self, job: NewJob) -> NewJob {
///         job.priority(Priority::HIGHEST)
///             .max_attempts(NonZeroU16::new(5).expect("not zero"))
///             .expires_in(Duration::from_secs(600))
///     }
///
///     fn unique(&self) -> Option<String> {
///         Some(self.user.to_string()) // one unfinished job for each user
///     }
///
///     fn timeout() -> Option<Duration> {
///         Some(Duration::from_secs(30)) // of each attempt
///     }
/// }
///
/// let job = ResetPassword { user: 7 }.to_new_job()?;
/// assert_eq!(&job.payload[..], br#"{"user":7}"#);
/// assert_eq!(job.headers.get("kind"), Some("reset-password"));
/// # Ok::<(), EnqueueError>(())
/// ```
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// The name of the kind: 1 to 128 bytes of text without control characters.
    ///
    /// The name is stored with each job, so it must not change while jobs of the kind
    /// are in a queue. A kind with an invalid name does not compile:
    ///
    /// ```compile_fail
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Unnamed;
    ///
    /// impl relq_worker::Job for Unnamed {
    ///     const KIND: &'static str = "";
    /// }
    /// relq_worker::Job::to_new_job(&Unnamed).unwrap();
    /// ```
    const KIND: &'static str;

    /// The name of the queue that a [`Producer`](crate::Producer) pushes jobs of the kind
    /// to. The default is `None`, for the default queue of the producer.
    ///
    /// The calls of [`Enqueue`](crate::Enqueue) push to the queue on which they are
    /// called, not to this one. The name is not stored with a job, and a worker runs a
    /// job of the kind from any queue.
    ///
    /// A name that [`QueueName::new`](relq_core::QueueName::new) refuses does not compile:
    ///
    /// ```compile_fail
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct SendEmail;
    ///
    /// impl relq_worker::Job for SendEmail {
    ///     const KIND: &'static str = "send-email";
    ///     const QUEUE: Option<&'static str> = Some("{mail}");
    /// }
    /// relq_worker::Job::to_new_job(&SendEmail).unwrap();
    /// ```
    const QUEUE: Option<&'static str> = None;

    /// The effect of a push if another job has the same [`unique`](Self::unique) text.
    /// The default changes nothing.
    const ON_DUPLICATE: OnDuplicate = OnDuplicate::Keep;

    /// Sets the options with which this job is pushed: priority, attempts, lease, delay,
    /// expiry, headers, the job that it follows, and for how long its result is kept. `job`
    /// has its payload and its unique key already. The default sets nothing.
    fn options(&self, job: NewJob) -> NewJob {
        job
    }

    /// A text that is the same for two jobs of the kind that do the same work. At most
    /// one unfinished job of the kind has it (R16): the text is free again when that job
    /// is done, discarded, dead, cancelled or expired. The default is `None`, for a job
    /// that may be pushed any number of times.
    ///
    /// The unique key is the name of the kind, a colon and this text, and has at most
    /// [`UniqueKey::MAX_BYTES`]. A colon or a backslash in the name has a backslash before
    /// it in the key, which counts too.
    fn unique(&self) -> Option<String> {
        None
    }

    /// How long one attempt at a job of the kind may take. The default is `None`, for
    /// the [time-out of the worker](crate::Worker::timeout).
    fn timeout() -> Option<Duration> {
        None
    }

    /// How long a failed job of the kind waits for its next attempt. The default is
    /// `None`, for the [policy of the worker](crate::Worker::retry).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relq_worker::{Job, RetryPolicy};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct SendEmail;
    /// impl Job for SendEmail {
    ///     const KIND: &'static str = "send-email";
    ///
    ///     fn retry_policy() -> Option<RetryPolicy> {
    ///         let (minute, hour) = (Duration::from_secs(60), Duration::from_secs(3600));
    ///         let policy = RetryPolicy::exponential(minute, hour);
    ///         Some(policy.expect("a minute is less than an hour"))
    ///     }
    /// }
    /// ```
    fn retry_policy() -> Option<RetryPolicy> {
        None
    }

    /// This job with its options, to be pushed as it is or after a change of an option.
    /// [`Enqueue::enqueue`](crate::Enqueue::enqueue) pushes it as it is. No kind should
    /// override this method.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relq_core::{ReliableQueue, ReliableQueueExt};
    /// # use relq_worker::Job;
    /// # async fn example(
    /// #     queue: &dyn ReliableQueue,
    /// #     reminder: impl Job,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let tomorrow = Duration::from_secs(24 * 60 * 60);
    /// queue.push_one(reminder.to_new_job()?.delay(tomorrow)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`EnqueueError::Encode`] when the value cannot be JSON, such as a map whose keys
    /// are not strings, and [`EnqueueError::UniqueKey`] when the unique text is empty,
    /// too long, or has control characters.
    fn to_new_job(&self) -> Result<NewJob, EnqueueError> {
        const { assert_valid::<Self>() };
        let payload = serde_json::to_vec(self)
            .map_err(|source| EnqueueError::Encode { kind: Self::KIND, source })?;
        let mut job = NewJob::new(payload);
        if let Some(text) = self.unique() {
            job = job.unique_or(unique_key(Self::KIND, &text)?, Self::ON_DUPLICATE);
        }
        Ok(self.options(job).header(KIND_HEADER, Self::KIND))
    }
}

/// The key begins with the kind, so that jobs of two kinds are never duplicates. Its first
/// colon that is not escaped ends the kind, because kinds and texts may contain colons. An
/// empty text is refused because it is a mistake: the key would be that of the kind.
fn unique_key(kind: &'static str, text: &str) -> Result<UniqueKey, EnqueueError> {
    let escaped = kind.replace('\\', r"\\").replace(':', r"\:");
    UniqueKey::new(text)
        .and_then(|_text| UniqueKey::new(format!("{escaped}:{text}")))
        .map_err(|source| EnqueueError::UniqueKey { kind, source })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All texts of up to `longest` letters, colons and backslashes.
    fn texts(longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        for _ in 0..longest {
            let longer = all.iter().flat_map(|text| {
                ['a', ':', '\\'].map(|character| format!("{text}{character}"))
            });
            all = longer.chain([String::new()]).collect();
        }
        all.retain(|text| !text.is_empty());
        all
    }

    /// R16: two jobs have one key only if both their kinds and their texts are the same.
    #[test]
    fn each_kind_and_text_has_a_key_of_its_own() {
        let (kinds, texts) = (texts(3), texts(2));
        let mut keys = BTreeSet::new();
        for kind in &kinds {
            let kind: &'static str = kind.clone().leak();
            for text in &texts {
                let key = unique_key(kind, text).unwrap();
                assert!(keys.insert(key.clone()), "{key} of {kind:?} and {text:?}");
            }
        }
        assert_eq!(keys.len(), kinds.len() * texts.len());
    }
}
