//! Why an attempt failed, and what the worker does with the job.

use std::{fmt, time::Duration};

use relq_core::{
    error::BoxError,
    limits::{MAX_DURATION, MAX_ERROR_BYTES},
};

/// Why an attempt failed, and what the worker does with the job.
///
/// Any error, and any text, converts into a failure that is retried by the worker's
/// [`RetryPolicy`](crate::RetryPolicy), so `?` works in a handler. The text is that of
/// the error and of all its causes. Of any text, the first 4 KiB ([`MAX_ERROR_BYTES`])
/// are kept.
///
/// ```
/// use relq_worker::Failure;
///
/// fn count(text: &str) -> Result<u32, Failure> {
///     if text.is_empty() {
///         return Err(Failure::dead("nothing to count"));
///     }
///     Ok(text.parse()?)
/// }
/// assert_eq!(count("x").unwrap_err().message(), "invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub(crate) then: Then,
    message: String,
}

/// How the worker settles a failed job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Retry,
    RetryAfter(Duration),
    Bury,
    Discard,
    Postpone(Duration),
}

impl Failure {
    /// A failure that is retried after the delay of the retry policy; the job is buried
    /// after its last attempt.
    pub fn retry(message: impl Into<String>) -> Self {
        Self::new(Then::Retry, message)
    }

    /// A failure that is retried after `delay`; the job is buried after its last
    /// attempt. A delay above [`MAX_DURATION`] is reduced to it.
    pub fn retry_after(delay: Duration, message: impl Into<String>) -> Self {
        Self::new(Then::RetryAfter(delay.min(MAX_DURATION)), message)
    }

    /// A failure that buries the job at once, because another attempt would fail too.
    pub fn dead(message: impl Into<String>) -> Self {
        Self::new(Then::Bury, message)
    }

    /// A failure that removes the job, because its result is no longer needed. The
    /// message goes to the log only.
    pub fn discard(message: impl Into<String>) -> Self {
        Self::new(Then::Discard, message)
    }

    /// For a job that cannot be run now, for example because a limit outside the queue is
    /// reached. It is delivered again after `delay`, and the attempt is not counted: the
    /// job is never buried for it (R26). A delay above [`MAX_DURATION`] is reduced to it.
    /// The message goes to the log only.
    pub fn postpone(delay: Duration, message: impl Into<String>) -> Self {
        Self::new(Then::Postpone(delay.min(MAX_DURATION)), message)
    }

    /// The failure as an error, for code between a handler and its worker that passes
    /// errors on, such as the layers of tower. The error converts back into the same
    /// failure.
    ///
    /// ```
    /// use relq_worker::Failure;
    ///
    /// let error = Failure::dead("no such address").into_error();
    /// assert_eq!(Failure::from(error), Failure::dead("no such address"));
    /// ```
    pub fn into_error(self) -> BoxError {
        Box::new(FailureError(self))
    }

    /// The text that says why the attempt failed, or why the job was not run.
    pub fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn into_message(self) -> String {
        self.message
    }

    fn new(then: Then, message: impl Into<String>) -> Self {
        let mut message = message.into();
        let is_end = |&end: &usize| message.is_char_boundary(end);
        message.truncate(
            (0..=MAX_ERROR_BYTES.min(message.len())).rev().find(is_end).unwrap_or(0),
        );
        Self { then, message }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        match error.into().downcast::<FailureError>() {
            Ok(failure) => failure.0,
            Err(error) => Self::retry(with_causes(&*error)),
        }
    }
}

/// A failure as an error. [`Failure`] itself cannot be one, because every error converts
/// into a failure.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct FailureError(Failure);

fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let failure = Failure::retry("é".repeat(MAX_ERROR_BYTES) + "x");
        assert_eq!(failure.message().len(), MAX_ERROR_BYTES);

        let odd = Failure::retry(format!("x{}", "é".repeat(MAX_ERROR_BYTES)));
        assert_eq!(odd.message().len(), MAX_ERROR_BYTES - 1);
    }

    #[test]
    fn an_error_is_retried_and_its_message_has_its_causes() {
        let at = relq_core::error::ErrorContext {
            backend: "zset",
            operation: relq_core::error::Operation::Push,
        };
        let error = relq_core::Error::Full { at, source: "no memory".into() };
        let failure = Failure::from(error);
        assert_eq!(failure.then, Then::Retry);
        assert_eq!(failure.message(), "zset push: the store is full: no memory");
    }

    #[test]
    fn an_endless_delay_is_held_at_the_longest() {
        let failure = Failure::retry_after(Duration::MAX, "busy");
        assert_eq!(failure.then, Then::RetryAfter(MAX_DURATION));

        let failure = Failure::postpone(Duration::MAX, "paused");
        assert_eq!(failure.then, Then::Postpone(MAX_DURATION));
    }
}
