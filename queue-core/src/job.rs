//! The data that a producer pushes: a payload and its options.

use std::{fmt, num::NonZeroU16, str::FromStr, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::environment::Randomness;
use crate::limits::DEFAULT_MAX_ATTEMPTS;
use crate::name::{InvalidName, check_text, checked_text};
use crate::unique::{OnDuplicate, Unique, UniqueKey};

checked_text! {
    /// The identity of a job: 1 to 128 bytes of text without control characters.
    ///
    /// Made by the backend, or by the client for a push that can be repeated (R4).
    JobId, "the job id", 128, |_| Ok(())
}

checked_text! {
    /// The identity of one `push` call, so that the call can be repeated safely (R4): 1
    /// to 64 characters of `A-Z a-z 0-9 - _`.
    ///
    /// The ids of the call's jobs begin with it, so two calls must not share one.
    PushToken, "the push token", 64, |text| {
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            Ok(())
        } else {
            Err(InvalidName::new("the push token", "may hold only A-Z a-z 0-9 - _"))
        }
    }
}

impl PushToken {
    /// A token that no other call has: 80 random bits.
    pub fn random(randomness: &dyn Randomness) -> Self {
        Self(randomness.text(16).into())
    }

    /// The id of the job at `index` in the call that carries this token.
    pub fn job_id(&self, index: usize) -> JobId {
        JobId(format!("{}-{index}", self.0).into())
    }
}

/// The priority of a job: 0 to 9. A larger one is delivered sooner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// The least urgent priority.
    pub const LOWEST: Self = Self(0);
    /// The default priority of a job.
    pub const NORMAL: Self = Self(5);
    /// The most urgent priority.
    pub const HIGHEST: Self = Self(9);

    /// The priority of that level, or `None` above 9.
    pub const fn new(level: u8) -> Option<Self> {
        if level <= Self::HIGHEST.0 { Some(Self(level)) } else { None }
    }

    /// The level, 0 to 9.
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

/// Names and values that travel with a job: a trace context, a content type.
///
/// Names are unique. Names and values are any text. Their order is kept.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// The value of the header of that name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Sets a header and replaces one of the same name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let name = name.into();
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, value.into()));
    }

    /// All names with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there are no headers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of all names and values together.
    pub fn total_bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut headers = Self::default();
        pairs.into_iter().for_each(|(name, value)| headers.set(name, value));
        headers
    }
}

/// A job to push.
///
/// ```
/// use std::time::Duration;
/// use relq_core::{NewJob, Priority};
///
/// let job = NewJob::new("resize 42")
///     .priority(Priority::HIGHEST)
///     .delay(Duration::from_secs(5));
/// assert_eq!(&job.payload[..], b"resize 42");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewJob {
    /// The payload: any bytes, which are delivered unchanged (R2).
    pub payload: Bytes,
    /// An id that the client made, so that a second push stores no second job (R4).
    pub id: Option<JobId>,
    /// How long after the push the job becomes ready (R14).
    pub delay: Duration,
    /// How long after the push the job is buried if it was not delivered (R17).
    pub expires_in: Option<Duration>,
    /// The job's priority among the ready jobs (R15).
    pub priority: Priority,
    /// A key that only one job may hold (R16).
    pub unique: Option<Unique>,
    /// Deliveries before the job is buried (R11).
    pub max_attempts: NonZeroU16,
    /// A lease length for this job, instead of the one that the worker asks for.
    pub lease: Option<Duration>,
    /// The job's headers.
    pub headers: Headers,
}

impl NewJob {
    /// A job of that payload, ready at once, with every option at its default.
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
            headers: Headers::default(),
        }
    }

    /// The bytes of the payload and the headers together.
    pub fn total_bytes(&self) -> usize {
        self.payload.len() + self.headers.total_bytes()
    }

    /// Sets an id that the client made.
    #[must_use]
    pub fn id(mut self, id: JobId) -> Self {
        self.id = Some(id);
        self
    }

    /// Makes the job ready only after `delay`.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets how long after the push the job is buried if it was not delivered.
    #[must_use]
    pub fn expires_in(mut self, expires_in: Duration) -> Self {
        self.expires_in = Some(expires_in);
        self
    }

    /// Sets the job's priority.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Binds the job to a unique key. If another job holds the key, that job does not
    /// change.
    #[must_use]
    pub fn unique(self, key: UniqueKey) -> Self {
        self.unique_or(key, OnDuplicate::Keep)
    }

    /// Binds the job to a unique key, and sets how a held key is treated.
    #[must_use]
    pub fn unique_or(mut self, key: UniqueKey, on_duplicate: OnDuplicate) -> Self {
        self.unique = Some(Unique { key, on_duplicate });
        self
    }

    /// Sets the most deliveries of the job.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: NonZeroU16) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets a lease length for this job.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Adds a header and replaces one of the same name.
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
