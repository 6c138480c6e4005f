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
    Headers, JobId, Priority,
    batch::BatchId,
    environment::{Randomness, Timestamp},
    limits::DEFAULT_MAX_ATTEMPTS,
};

checked_text! {
    /// The identity of one run of a worker: 1 to 128 characters of
    /// `A-Z a-z 0-9 . : _ -`. The id is not used again after the run ends.
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
    /// A new id of the form `host:pid:nonce`. The nonce has 40 random bits, so that a
    /// later process with the same process id gets another worker id.
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

    /// The host in an id of the form `host:pid:nonce`; `None` if the id has another form.
    pub fn host(&self) -> Option<&str> {
        self.host_and_pid().map(|(host, _)| host)
    }

    /// The process id in an id of the form `host:pid:nonce`; `None` if the id has another
    /// form.
    pub fn pid(&self) -> Option<u32> {
        self.host_and_pid().map(|(_, pid)| pid)
    }

    fn host_and_pid(&self) -> Option<(&str, u32)> {
        let mut parts = self.as_str().rsplitn(3, ':');
        let (_nonce, pid, host) = (parts.next()?, parts.next()?, parts.next()?);
        Some((host, pid.parse().ok()?))
    }
}

/// The proof that a worker holds one lease. A settlement or extension must present it
/// (R7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    job: JobId,
    attempt: u32,
    token: Bytes,
}

impl Receipt {
    /// Creates the receipt of a new lease. A backend calls this. `token` differs from
    /// the tokens of all other leases, of this job and of all other jobs.
    pub fn new(job: JobId, attempt: u32, token: impl Into<Bytes>) -> Self {
        Self { job, attempt, token: token.into() }
    }

    /// The job that is leased.
    pub fn job(&self) -> &JobId {
        &self.job
    }

    /// The number of this delivery of the job. The first delivery has the number 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The token that identifies this lease, in the backend's own form.
    pub fn token(&self) -> &Bytes {
        &self.token
    }
}

/// A worker's request for jobs.
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use relq_core::{ClaimRequest, WorkerId, environment::Environment};
///
/// let me = WorkerId::of_this_process(Environment::default().random());
/// let ask = ClaimRequest::new(me, Duration::from_secs(30)) // the lease of each job
///     .max(NonZeroU32::new(8).expect("not zero"))
///     .wait(Duration::from_secs(5)); // when nothing is ready
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimRequest {
    /// The worker that claims.
    pub worker: WorkerId,
    /// The largest number of jobs to return.
    pub max: NonZeroU32,
    /// How long each claimed job is leased, unless the job has a lease length of its
    /// own.
    pub lease: Duration,
    /// How long to wait when nothing is ready. With zero the claim returns at once.
    pub wait: Duration,
}

impl ClaimRequest {
    /// The largest total size of the jobs of one claim, in bytes as they are stored: 1
    /// MiB. A larger reply would keep the store and the connection busy while leases
    /// run. If a claim returns a single job, the job may have any size (R6).
    pub const MAX_BYTES: usize = 1024 * 1024;

    /// Creates a request for one job, leased for `lease`. The claim does not wait.
    pub fn new(worker: WorkerId, lease: Duration) -> Self {
        Self { worker, max: NonZeroU32::MIN, lease, wait: Duration::ZERO }
    }

    /// Sets the largest number of jobs to return.
    #[must_use]
    pub fn max(mut self, max: NonZeroU32) -> Self {
        self.max = max;
        self
    }

    /// Sets how long the claim waits when nothing is ready.
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
    /// Proof of the job's lease, which every settlement and extension presents.
    pub receipt: Receipt,
    /// The pushed payload, byte for byte (R2).
    pub payload: Bytes,
    /// How long the lease runs, counted from the claim and from each extension.
    pub lease: Duration,
    /// How many times the job may be delivered before it is buried.
    pub max_attempts: NonZeroU16,
    /// The job's priority among the ready jobs (R15).
    pub priority: Priority,
    /// The job's headers, as the producer set them.
    pub headers: Headers,
    /// When the job was pushed, by the store's clock (R27). `None` if the producer does
    /// not record this time, as other clients and early versions of relq do not.
    pub enqueued_at: Option<Timestamp>,
    /// The batch that the job is a piece of, or `None`.
    pub batch: Option<BatchId>,
    /// Whether a result and reports of progress are kept for the producer (R29).
    pub keeps_result: bool,
}

impl Delivery {
    /// Creates a delivery with default options. The backend then sets the job's
    /// options.
    pub fn new(receipt: Receipt, payload: impl Into<Bytes>, lease: Duration) -> Self {
        Self {
            receipt,
            payload: payload.into(),
            lease,
            max_attempts: DEFAULT_MAX_ATTEMPTS,
            priority: Priority::NORMAL,
            headers: Headers::default(),
            enqueued_at: None,
            batch: None,
            keeps_result: false,
        }
    }

    /// Returns the total size of the payload and the headers, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.payload.len() + self.headers.total_bytes()
    }

    /// Sets how many times the job may be delivered before it is buried.
    #[must_use]
    pub fn max_attempts(mut self, max_attempts: NonZeroU16) -> Self {
        self.max_attempts = max_attempts;
        self
    }

    /// Sets the job's priority among the ready jobs (R15).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets the job's headers, as the producer set them.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers = headers;
        self
    }

    /// Sets when the job was pushed, by the store's clock (R27).
    #[must_use]
    pub fn enqueued_at(mut self, enqueued_at: Option<Timestamp>) -> Self {
        self.enqueued_at = enqueued_at;
        self
    }

    /// Records that the job is a piece of `batch`.
    #[must_use]
    pub fn batch(mut self, batch: BatchId) -> Self {
        self.batch = Some(batch);
        self
    }

    /// Sets whether a result and reports of progress are kept for the producer (R29).
    #[must_use]
    pub fn keeps_result(mut self, keeps_result: bool) -> Self {
        self.keeps_result = keeps_result;
        self
    }

    /// The job's id.
    pub fn job(&self) -> &JobId {
        self.receipt.job()
    }

    /// The number of this delivery of the job. The first delivery has the number 1.
    pub fn attempt(&self) -> u32 {
        self.receipt.attempt()
    }

    /// Whether the number of this delivery is above 1, so that a handler may have run the
    /// job before, in part or as a whole.
    ///
    /// `false` does not mean that no handler has run the job. A delivery that was given
    /// back or postponed is not counted, also if its handler had begun, and after a redrive
    /// the count begins anew (R11).
    pub fn is_redelivery(&self) -> bool {
        self.attempt() > 1
    }

    /// Whether this is the last attempt, so that a `Retry` of this delivery buries the
    /// job.
    pub fn is_last_attempt(&self) -> bool {
        self.attempt() >= u32::from(self.max_attempts.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::OsRandomness;

    /// Each run of a worker has an id of its own, also in one process.
    #[test]
    fn the_id_of_a_process_names_it_and_is_used_once() {
        let [one, other] = [(); 2].map(|()| WorkerId::of_this_process(&OsRandomness));

        assert_ne!(one, other, "a second run of a worker");
        assert_eq!(one.pid(), Some(std::process::id()));
        assert!(one.host().is_some_and(|host| !host.is_empty()), "{one}");
        assert_eq!(WorkerId::new(one.as_str()), Ok(one), "it is a valid id");
    }

    #[test]
    fn the_worker_id_has_host_and_pid() {
        let worker = WorkerId::new("host.example:42:nonce").unwrap();
        assert_eq!((worker.host(), worker.pid()), (Some("host.example"), Some(42)));
        let other = WorkerId::new("other").unwrap();
        assert_eq!((other.host(), other.pid()), (None, None));
    }
}
