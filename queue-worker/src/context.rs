//! A job as its handler sees it.

use std::{
    num::NonZeroU16,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use relq_core::{BatchId, Bytes, Delivery, Headers, JobId, Priority, Receipt};
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
    /// When the lease may be over, in microseconds by the worker's own clock.
    until_us: AtomicU64,
    /// Whether a call that settles it is under way.
    is_settling: AtomicBool,
}

/// Why a handler is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancellation {
    /// The lease is lost, or may be: another worker may be on the job by now.
    LeaseLost,
    /// An operator cancelled the job.
    Cancelled,
    /// The handler took longer than the worker's time-out.
    TimedOut,
    /// The worker shuts down, and the grace time is over.
    ShutDown,
}

/// Why there is nothing to settle any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    Lost,
    Cancelled,
}

impl JobContext {
    /// A job of its own, held by no worker: for tests of handlers.
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

    /// What was pushed, byte for byte (R2).
    pub fn payload(&self) -> &Bytes {
        &self.0.delivery.payload
    }

    /// Which delivery of the job this is, from 1.
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

    /// What travels with the job.
    pub fn headers(&self) -> &Headers {
        &self.0.delivery.headers
    }

    /// The batch that the job is a piece of, if it is one.
    pub fn batch(&self) -> Option<&BatchId> {
        self.0.delivery.batch.as_ref()
    }

    /// How soon the job was wanted.
    pub fn priority(&self) -> Priority {
        self.0.delivery.priority
    }

    /// How long the job is held; the worker extends that while the handler runs.
    pub fn lease(&self) -> Duration {
        self.0.delivery.lease
    }

    /// Completes when the handler should stop. What it answers afterwards still
    /// counts, unless the lease is lost or the job cancelled.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }

    /// Why the handler should stop; `None` while it should go on.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.0.cancellation.get().copied()
    }

    /// A token that fires when the handler should stop, for code that takes one.
    pub fn token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Asks the handler to stop. The first reason stays.
    pub(crate) fn cancel(&self, why: Cancellation) {
        self.0.cancellation.get_or_init(|| why);
        self.0.token.cancel();
    }

    /// The lease is over: nothing is settled, and the handler should stop. Answers
    /// whether this was news.
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

    /// Whether another worker may hold the job by now.
    pub(crate) fn may_be_over(&self, now: Duration) -> bool {
        self.until() <= now
    }

    /// An older answer that comes late does not shorten the lease.
    pub(crate) fn extend_until(&self, until: Duration) {
        self.0.until_us.fetch_max(micros(until), Relaxed);
    }

    /// From here until `settling_failed`, the store may have done with the job before
    /// its answer is here.
    pub(crate) fn settling(&self) {
        self.0.is_settling.store(true, Relaxed);
    }

    pub(crate) fn settling_failed(&self) {
        self.0.is_settling.store(false, Relaxed);
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.0.is_settling.load(Relaxed)
    }

    /// Tells this job from all others that are held at the same time.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
