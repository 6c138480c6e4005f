//! A job as its handler sees it.

use std::{
    num::NonZeroU16,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use relq_core::{Bytes, Delivery, Headers, JobId, Priority, Receipt, batch::BatchId};
use tokio_util::sync::CancellationToken;

/// A job as its handler sees it. Clones are cheap and share everything.
#[derive(Debug, Clone)]
pub struct JobContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    delivery: Delivery,
    token: CancellationToken,
    cancellation: OnceLock<Cancellation>,
    lease_end: OnceLock<LeaseEnd>,
    /// When the lease may expire, in microseconds by the worker's own clock.
    until_us: AtomicU64,
    /// Whether a call that settles the job is pending.
    is_settling: AtomicBool,
}

/// Why a handler is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancellation {
    /// The lease is lost, or may be: another worker may already run the job.
    LeaseLost,
    /// An operator cancelled the job.
    Cancelled,
    /// The handler took longer than the worker's time-out.
    TimedOut,
    /// The worker shuts down, and the grace time has passed.
    ShutDown,
}

/// Why the job no longer needs a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    Lost,
    Cancelled,
}

impl JobContext {
    /// A job that no worker holds: for tests of handlers.
    pub fn new(delivery: Delivery) -> Self {
        Self::held_until(delivery, Duration::MAX)
    }

    pub(crate) fn held_until(delivery: Delivery, until: Duration) -> Self {
        Self(Arc::new(Inner {
            delivery,
            token: CancellationToken::new(),
            cancellation: OnceLock::new(),
            lease_end: OnceLock::new(),
            until_us: AtomicU64::new(micros(until)),
            is_settling: AtomicBool::new(false),
        }))
    }

    /// The job's id.
    pub fn id(&self) -> &JobId {
        self.0.delivery.job()
    }

    /// The pushed payload, byte for byte (R2).
    pub fn payload(&self) -> &Bytes {
        &self.0.delivery.payload
    }

    /// The number of this delivery of the job, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.delivery.attempt()
    }

    /// Deliveries before the job is buried.
    pub fn max_attempts(&self) -> NonZeroU16 {
        self.0.delivery.max_attempts
    }

    /// Whether a failure of this attempt buries the job.
    pub fn is_last_attempt(&self) -> bool {
        self.0.delivery.is_last_attempt()
    }

    /// Whether an earlier attempt may have run, in part or whole.
    pub fn is_redelivery(&self) -> bool {
        self.0.delivery.is_redelivery()
    }

    /// The headers of the job.
    pub fn headers(&self) -> &Headers {
        &self.0.delivery.headers
    }

    /// The batch that the job is a piece of, if it is one.
    pub fn batch(&self) -> Option<&BatchId> {
        self.0.delivery.batch.as_ref()
    }

    /// The priority of the job.
    pub fn priority(&self) -> Priority {
        self.0.delivery.priority
    }

    /// The length of the lease; the worker extends the lease while the handler runs.
    pub fn lease(&self) -> Duration {
        self.0.delivery.lease
    }

    /// Completes when the handler should stop. The result that it returns afterwards
    /// still counts, unless the lease is lost or the job cancelled.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }

    /// Why the handler should stop; `None` while it should continue.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.0.cancellation.get().copied()
    }

    /// A token that fires when the handler should stop, for code that takes a token.
    pub fn token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Asks the handler to stop. The first reason stays.
    pub(crate) fn cancel(&self, why: Cancellation) {
        self.0.cancellation.get_or_init(|| why);
        self.0.token.cancel();
    }

    /// Ends the lease: nothing is settled, and the handler should stop. Returns whether
    /// the lease had not been ended before.
    pub(crate) fn end_lease(&self, end: LeaseEnd) -> bool {
        let is_news = self.0.lease_end.set(end).is_ok();
        self.cancel(match end {
            LeaseEnd::Lost => Cancellation::LeaseLost,
            LeaseEnd::Cancelled => Cancellation::Cancelled,
        });
        is_news
    }

    pub(crate) fn lease_end(&self) -> Option<LeaseEnd> {
        self.0.lease_end.get().copied()
    }

    pub(crate) fn receipt(&self) -> &Receipt {
        &self.0.delivery.receipt
    }

    pub(crate) fn until(&self) -> Duration {
        Duration::from_micros(self.0.until_us.load(Relaxed))
    }

    /// Whether another worker may already hold the job.
    pub(crate) fn may_be_over(&self, now: Duration) -> bool {
        self.until() <= now
    }

    /// Sets the end of the lease. A late reply to an older call does not shorten it.
    pub(crate) fn extend_until(&self, until: Duration) {
        self.0.until_us.fetch_max(micros(until), Relaxed);
    }

    /// From here until `settling_failed`, the store may have ended the job although its
    /// reply has not arrived yet.
    pub(crate) fn settling(&self) {
        self.0.is_settling.store(true, Relaxed);
    }

    pub(crate) fn settling_failed(&self) {
        self.0.is_settling.store(false, Relaxed);
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.0.is_settling.load(Relaxed)
    }

    /// Identifies this job among all jobs that are held at the same time.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
