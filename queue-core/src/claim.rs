//! The data that a worker sends with a claim, and the data that it receives.

use std::{
    fmt,
    num::{NonZeroU16, NonZeroU32},
    str::FromStr,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;

use crate::name::{InvalidName, check_text, checked_text};
use crate::{
    Headers, JobId, Priority, batch::BatchId, environment::Randomness,
    limits::DEFAULT_MAX_ATTEMPTS,
};

checked_text! {
    /// The identity of one run of a worker: 1 to 128 characters of
    /// `A-Z a-z 0-9 . : _ -`. Not used again after the run ends.
    ///
    /// [`WorkerId::of_this_process`] contains the host and the process id, so that an
    /// operator can find the worker.
    WorkerId, "the worker id", 128, |text| {
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b".:_-".contains(&b)) {
            Ok(())
        } else {
            Err(InvalidName::new("the worker id", "may hold only A-Z a-z 0-9 . : _ -"))
        }
    }
}

impl WorkerId {
    /// `host:pid:nonce`. The nonce has 40 random bits, so that a reused process id does
    /// not name the same worker.
    pub fn of_this_process(randomness: &dyn Randomness) -> Self {
        let host: String = gethostname::gethostname()
            .to_string_lossy()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' })
            .take(64)
            .collect();
        let id = format!("{host}:{}:{}", std::process::id(), randomness.text(8));
        Self(id.into())
    }
}

/// Proof of one lease. A settlement or extension must present it (R7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    job: JobId,
    attempt: u32,
    token: Bytes,
}

impl Receipt {
    /// A receipt that a backend issues. `token` differs from the token of every other
    /// lease, of this job or another.
    pub fn new(job: JobId, attempt: u32, token: impl Into<Bytes>) -> Self {
        Self { job, attempt, token: token.into() }
    }

    /// The job that is leased.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The number of this delivery of the job, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The token that identifies this lease, in the backend's own form.
    pub fn token(&self) -> &Bytes {
        &self.token
    }
}

/// A worker's request for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// The worker that claims.
    pub worker: WorkerId,
    /// The most jobs to return.
    pub max: NonZeroU32,
    /// How long each is leased, unless the job has a lease of its own.
    pub lease: Duration,
    /// How long to wait when nothing is ready. With zero the claim returns at once.
    pub wait: Duration,
}

impl ClaimRequest {
    /// The most bytes of all jobs of a claim, as they are stored: 1 MiB. A single job
    /// may have any size (R6). A larger reply would keep the store and the connection
    /// busy while leases run.
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// Asks for one job, leased for `lease`, without waiting.
    pub fn new(worker: WorkerId, lease: Duration) -> Self {
        Self { worker, max: NonZeroU32::MIN, lease, wait: Duration::ZERO }
    }

    /// Asks for up to `max` jobs.
    #[must_use]
    pub fn max(mut self, max: NonZeroU32) -> Self {
        self.max = max;
        self
    }

    /// Waits up to `wait` when nothing is ready.
    #[must_use]
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }
}

/// A job that a worker has claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delivery {
    /// Proof of the lease.
    pub receipt: Receipt,
    /// The pushed payload, byte for byte (R2).
    pub payload: Bytes,
    /// How long the lease runs from the claim, and from each extension.
    pub lease: Duration,
    /// Deliveries before the job is buried.
    pub max_attempts: NonZeroU16,
    /// The job's priority.
    pub priority: Priority,
    /// The job's headers.
    pub headers: Headers,
    /// The batch of the job, if the job is a piece.
    pub batch: Option<BatchId>,
}

impl Delivery {
    /// A delivery with default options, for a backend to complete.
    pub fn new(receipt: Receipt, payload: impl Into<Bytes>, lease: Duration) -> Self {
        Self {
            receipt,
            payload: payload.into(),
            lease,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            priority: Priority::NORMAL,
            headers: Headers::default(),
            batch: None,
        }
    }

    /// Sets the most deliveries of the job.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: NonZeroU16) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the job's priority.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the job's headers.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// Makes the job a piece of a batch.
    #[must_use]
    pub fn batch(mut self, batch: BatchId) -> Self {
        self.batch = Some(batch);
        self
    }

    /// The job's id.
    pub fn job(&self) -> &JobId {
        self.receipt.job()
    }

    /// The number of this delivery of the job, from 1.
    pub fn attempt(&self) -> u32 {
        self.receipt.attempt()
    }

    /// Whether an earlier delivery of the job may have run, in part or whole.
    pub fn is_redelivery(&self) -> bool {
        self.attempt() > 1
    }

    /// Whether a `Retry` of this delivery buries the job.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= u32::from(self.max_attempts.get())
    }
}
