//! The data that a producer pushes: a payload and its options.

use std::{
    collections::HashSet, fmt, num::NonZeroU16, str::FromStr, sync::Arc, time::Duration,
};

use bytes::Bytes;

use crate::environment::{Randomness, Timestamp};
use crate::limits::DEFAULT_MAX_ATTEMPTS;
use crate::name::{InvalidName, check_text, checked_text};
use crate::unique::{OnDuplicate, Unique, UniqueKey};

checked_text! {
    /// The identity of a job: 1 to 128 bytes of text without control characters.
    ///
    /// The backend makes the id, or the client makes it for a push that can be repeated
    /// (R4).
    JobId, "the job id", 128, |_| Ok(())
}

checked_text! {
    /// The identity of one `push` call, so that the call can be repeated safely (R4): 1
    /// to 64 characters of `A-Z a-z 0-9 - _`.
    ///
    /// The ids of the call's jobs begin with the token, so each call needs a token of
    /// its own. Make it before the first attempt, and repeat the call with the same one:
    ///
    /// ```
    /// use std::time::Instant;
    /// use relq_core::{Error, NewJob, PushToken, ReliableQueue, outcome::Pushed};
    /// use relq_core::{environment::Environment, error::RetryAdvice};
    /// use relq_core::limits::DEDUPLICATION_WINDOW;
    ///
    /// /// Repeats the push while that may help. Nothing is stored twice.
    /// async fn push(
    ///     queue: &dyn ReliableQueue,
    ///     jobs: &[NewJob],
    /// ) -> Result<Vec<Pushed>, Error> {
    ///     let token = PushToken::random(Environment::default().random());
    ///     let began = Instant::now();
    ///     loop {
    ///         match queue.push(jobs, Some(&token)).await {
    ///             Err(error)
    ///                 if error.retry_advice() != RetryAdvice::Never
    ///                     && began.elapsed() < DEDUPLICATION_WINDOW / 2 => {}
    ///             result => return result,
    ///         }
    ///         pause().await;
    ///     }
    /// }
    /// # async fn pause() {}
    /// ```
    PushToken, "the push token", 64, |text| {
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            Ok(())
        } else {
            Err(InvalidName::new("the push token", "may hold only A-Z a-z 0-9 - _"))
        }
    }
}

impl PushToken {
    /// Creates a token from 80 random bits, so that no other call has it.
    pub fn random(randomness: &dyn Randomness) -> Self {
        Self(randomness.text(16).into())
    }

    /// Creates a token from the time `now`, in nine digits of `0-9a-v`, followed by
    /// `random_digits` random digits, of five bits each; at most 55, because a token has
    /// at most 64 characters. As text, it is greater than the tokens of earlier
    /// milliseconds, and so are the ids that are derived from it. Two calls in the same
    /// millisecond get the same token if they draw the same digits.
    pub fn ordered(
        now: Timestamp,
        random_digits: usize,
        randomness: &dyn Randomness,
    ) -> Self {
        let ms = now.unix_ms().max(0).unsigned_abs();
        let digit = |place: u32| {
            char::from_digit((ms >> (5 * place) & 31) as u32, 32).expect("five bits")
        };
        let time: String = (0..9).rev().map(digit).collect();
        Self((time + &randomness.text(random_digits)).into())
    }

    /// The id of the job at `index` in the call that carries this token.
    pub fn job_id(&self, index: usize) -> JobId {
        JobId(format!("{}-{index}", self.0).into())
    }
}

/// The priority of a job: 0 to 9. A job with a larger priority is delivered sooner. Some
/// backends accept fewer levels around [`NORMAL`](Self::NORMAL), and refuse the others:
/// [`Capabilities::priorities`](crate::capabilities::Capabilities::priorities) has the
/// range.
///
/// ```
/// use relq_core::Priority;
///
/// assert!(Priority::new(7) > Some(Priority::NORMAL));
/// assert_eq!(Priority::new(10), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// The least urgent priority of a job.
    pub const LOWEST: Self = Self(0);
    /// The default priority of a job.
    pub const NORMAL: Self = Self(5);
    /// The most urgent priority of a job.
    pub const HIGHEST: Self = Self(9);

    /// The priority of the given level, or `None` above 9.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= Self::HIGHEST.0 { Some(Self(level)) } else { None }
    }

    /// The priority as a number, 0 to 9.
    pub const fn level(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Names and values that are stored and delivered with a job, such as a trace context
/// or a content type.
///
/// Names are unique. Names and values may be any text. Their order is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of the header `name`, or `None` when there is no such header.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets the header `name` and replaces its earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }

    /// All headers, as pairs of name and value, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the total size of all names and values, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    /// Sets each header in turn, in a time that grows with their number: another client may
    /// push a job with very many.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(name, value)| (name.into(), value.into()));
        let mut headers: Vec<(String, String)> = pairs.collect();
        let mut names = HashSet::new();
        headers.reverse();
        headers.retain(|(name, _)| names.insert(name.clone()));
        headers.reverse();
        Self(headers)
    }
}

/// The payload and the options of a job that a producer pushes.
///
/// ```
/// use std::{num::NonZeroU16, time::Duration};
/// use relq_core::{JobId, NewJob, Priority, unique::UniqueKey};
///
/// let job = NewJob::new("resize 42")
///     .id(JobId::new("upload-42")?) // a repeated push stores no second job
///     .unique(UniqueKey::new("image-42")?) // one unfinished job per image
///     .delay(Duration::from_secs(5)) // not before five seconds have passed
///     .expires_in(Duration::from_secs(3600)) // dead if not delivered in an hour
///     .priority(Priority::HIGHEST)
///     .max_attempts(NonZeroU16::MIN) // never retried
///     .lease(Duration::from_secs(300)) // a dead worker holds it for 5 minutes
///     .keep_result(Duration::from_secs(600)) // what became of it can be read
///     .header("content-type", "text/plain");
/// assert_eq!(&job.payload[..], b"resize 42");
/// # Ok::<(), relq_core::error::InvalidName>(())
/// ```
///
/// A text, a byte string or a [`Bytes`] converts into a job with default options. A
/// backend that does not support an option refuses the push.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewJob {
    /// The payload: any bytes, which are delivered unchanged (R2).
    pub payload: Bytes,
    /// An id that the client made, so that a repeated push stores no second job (R4).
    /// With `None` the backend makes the id.
    pub id: Option<JobId>,
    /// How long after the push the job becomes ready (R14). With zero it is ready at
    /// once. The delay of a follower begins when its leader is done (R30).
    pub delay: Duration,
    /// The job is buried if it was not delivered within this time after the push (R17).
    /// With `None` the job does not expire.
    pub expires_in: Option<Duration>,
    /// The job's priority among the ready jobs (R15).
    pub priority: Priority,
    /// A key that only one unfinished job may hold (R16).
    pub unique: Option<Unique>,
    /// How many times the job may be delivered before it is buried (R11).
    pub max_attempts: NonZeroU16,
    /// A lease length for this job, instead of the one that the worker asks for.
    pub lease: Option<Duration>,
    /// For how long what became of the job is kept after its end (R29). With `None` it is
    /// not kept.
    pub keep_result: Option<Duration>,
    /// The job that must be done before this one becomes ready (R30). With `None` the job
    /// follows no other.
    pub after: Option<JobId>,
    /// Names and values that are stored and delivered with the job.
    pub headers: Headers,
}

impl NewJob {
    /// A job with the given payload, ready at once, with every option at its default.
    pub fn new(payload: impl Into<Bytes>) -> Self {
        Self {
            payload: payload.into(),
            id: None,
            delay: Duration::ZERO,
            expires_in: None,
            priority: Priority::NORMAL,
            unique: None,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            lease: None,
            keep_result: None,
            after: None,
            headers: Headers::default(),
        }
    }

    /// Returns the total size of the payload and the headers, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.payload.len() + self.headers.total_bytes()
    }

    /// Sets an id that the client made, so that a repeated push stores no second job
    /// (R4).
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Makes the job ready only after `delay`, counted from the push by the store's
    /// clock (R14). The delay of a follower is counted from the end of its leader (R30).
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets how long after the push the job is buried if it was not delivered (R17). By
    /// default the job does not expire.
    #[must_use]
    pub fn expires_in(mut self, expires_in: Duration) -> Self {
        self.expires_in = Some(expires_in);
        self
    }

    /// Sets the job's priority among the ready jobs (R15).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets a unique key. If another job holds the key, the push stores nothing and
    /// does not change that job.
    #[must_use]
    pub fn unique(self, key: UniqueKey) -> Self {
        self.unique_or(key, OnDuplicate::Keep)
    }

    /// Sets a unique key, and the effect of the push if another job holds the key.
    #[must_use]
    pub fn unique_or(mut self, key: UniqueKey, on_duplicate: OnDuplicate) -> Self {
        self.unique = Some(Unique { key, on_duplicate });
        self
    }

    /// Sets how many times the job may be delivered before it is buried (R11); the
    /// default is [`DEFAULT_MAX_ATTEMPTS`].
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: NonZeroU16) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets a lease length for this job, instead of the one that the worker asks for.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Keeps what becomes of the job: its progress, and its result for `keep_result` after
    /// it has ended (R29). A producer reads it by the job's id, with a
    /// [`JobHandle`](crate::results::JobHandle). The record of a dead job stays as long as
    /// the job.
    #[must_use]
    pub fn keep_result(mut self, keep_result: Duration) -> Self {
        self.keep_result = Some(keep_result);
        self
    }

    /// Makes the job follow the job with the id `leader` (R30): it becomes ready, or its
    /// delay begins, when the leader is done. If the leader ends otherwise, the job is
    /// cancelled. The id of the leader must be one that is
    /// [remembered](crate::followers).
    #[must_use]
    pub fn after(mut self, leader: JobId) -> Self {
        self.after = Some(leader);
        self
    }

    /// Sets the header `name` and replaces its earlier value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.set(name, value);
        self
    }
}

impl<T: Into<Bytes>> From<T> for NewJob {
    fn from(payload: T) -> Self {
        Self::new(payload)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A header that is collected again replaces the earlier one, as by `set`.
    #[test]
    fn of_collected_headers_with_one_name_the_last_counts() {
        let pairs = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")];
        let mut set = Headers::default();
        pairs.into_iter().for_each(|(name, value)| set.set(name, value));

        let collected: Headers = pairs.into_iter().collect();

        assert_eq!(collected, set);
        let found: Vec<_> = collected.iter().collect();
        assert_eq!(found, [("b", "2"), ("a", "3"), ("c", "4")]);
    }

    /// R20: another client may push a job with very many headers. Reading them must not take
    /// the square of their number, because the jobs behind it wait meanwhile.
    #[test]
    fn many_headers_are_collected_quickly() {
        let names = (0..200_000).map(|number| (number.to_string(), ""));
        let began = Instant::now();

        let headers: Headers = names.collect();

        assert_eq!(headers.iter().count(), 200_000);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
