//! The job that a handler receives.

use std::{
    num::NonZeroU16,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    time::Duration,
};

use relq_core::{
    Bytes, Delivery, Headers, JobId, Priority, QueueName, Receipt, ReliableQueue,
    batch::BatchId, environment::Timestamp,
};
use tokio_util::sync::CancellationToken;

use crate::{attempt_record::AttemptRecord, timing::Timing};

/// The header of a job that names its kind. The worker gives no other header a meaning.
pub const KIND_HEADER: &str = "kind";

/// The largest length of the name of a kind, in bytes. A unique key is at most 255 bytes
/// long and begins with the name of the kind, so this leaves half of it to the job, unless
/// the name has colons or backslashes, which take two bytes.
///
/// Another client can push a job with a longer kind. No `Job` has such a kind, and the span
/// of an attempt has only its beginning.
pub const MAX_KIND_BYTES: usize = 128;

/// The job that a handler receives. Clones are cheap and refer to the same job.
///
/// ```
/// use std::time::Duration;
/// use relq_worker::{Failure, JobContext};
///
/// /// Works page by page, and stops early when the lease is lost or the job cancelled.
/// async fn export(job: JobContext) -> Result<(), Failure> {
///     let pages: u32 = std::str::from_utf8(job.payload())?.parse()?;
///     for page in 1..=pages {
///         tokio::select! {
///             () = write(page) => {}
///             () = job.cancelled() => {
///                 return Err(Failure::retry(format!("{:?}", job.cancellation())));
///             }
///         }
///     }
///     Ok(())
/// }
/// # async fn write(_: u32) {}
/// ```
#[derive(Debug, Clone)]
pub struct JobContext(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    delivery: Delivery,
    queue: Option<QueueName>,
    token: CancellationToken,
    cancellation: OnceLock<Cancellation>,
    lease_end: OnceLock<LeaseEnd>,
    /// When the lease may expire, in microseconds by the worker's own clock.
    until_us: AtomicU64,
    /// Whether a call that settles the job is pending.
    is_settling: AtomicBool,
    /// Whether a call that failed may have settled the job.
    is_perhaps_settled: AtomicBool,
    timing: Timing,
    /// The result and the progress. `None` for a job that keeps none.
    record: Option<AttemptRecord>,
}

/// The queue that a worker has claimed a job from.
#[derive(Debug, Clone)]
pub(crate) struct ClaimedFrom {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    /// The name of the queue, if the worker serves several.
    pub(crate) name: Option<QueueName>,
}

/// Why a handler is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cancellation {
    /// The lease is lost, or may be: another worker may already run the job.
    LeaseLost,
    /// An operator cancelled the job.
    Cancelled,
    /// The handler took longer than the worker's time-out. Its future is dropped.
    TimedOut,
    /// The worker shuts down, and the grace time has passed. The handler's future is
    /// dropped.
    ShutDown,
}

/// How a lease ended while a worker held the job. The worker does not settle the job
/// any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseEnd {
    Lost,
    Cancelled,
}

impl JobContext {
    /// A job for tests of handlers. No worker holds it, and its lease never expires.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relq_core::{Delivery, JobId, Receipt};
    /// use relq_worker::JobContext;
    ///
    /// let receipt = Receipt::new(JobId::new("1")?, 2, "the token of the lease");
    /// let lease = Duration::from_secs(30);
    /// let job = JobContext::new(Delivery::new(receipt, "anna", lease));
    /// assert!(job.is_redelivery());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If the delivery keeps its result, the context remembers what the handler
    /// [sets](Self::set_result) and [reports](Self::report_progress), and makes no call:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relq_core::{Delivery, JobId, Receipt};
    /// # use relq_worker::JobContext;
    /// # let receipt = Receipt::new(JobId::new("1")?, 2, "the token of the lease");
    /// # let lease = Duration::from_secs(30);
    /// let job = JobContext::new(Delivery::new(receipt, "anna", lease).keeps_result(true));
    /// job.set_result("4 letters")?; // as the handler does
    /// assert_eq!(job.result().as_deref(), Some(&b"4 letters"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(delivery: Delivery) -> Self {
        Self::held_until(delivery, Duration::MAX)
    }

    pub(crate) fn held_until(delivery: Delivery, until: Duration) -> Self {
        Self::of(None, delivery, until)
    }

    pub(crate) fn claimed(
        from: &ClaimedFrom,
        delivery: Delivery,
        until: Duration,
    ) -> Self {
        Self::of(Some(from), delivery, until)
    }

    fn of(from: Option<&ClaimedFrom>, delivery: Delivery, until: Duration) -> Self {
        let queue = || from.map(|from| Arc::clone(&from.queue));
        let record = delivery.keeps_result.then(|| AttemptRecord::new(queue()));
        Self(Arc::new(Inner {
            delivery,
            queue: from.and_then(|from| from.name.clone()),
            token: CancellationToken::new(),
            cancellation: OnceLock::new(),
            lease_end: OnceLock::new(),
            until_us: AtomicU64::new(micros(until)),
            is_settling: AtomicBool::new(false),
            is_perhaps_settled: AtomicBool::new(false),
            timing: Timing::default(),
            record,
        }))
    }

    /// The job's id.
    pub fn id(&self) -> &JobId {
        self.0.delivery.job()
    }

    /// The name of the job's queue, if its worker serves [several](crate::Queues). `None`
    /// for a worker on one queue, which is not told the name.
    pub fn queue(&self) -> Option<&QueueName> {
        self.0.queue.as_ref()
    }

    /// The pushed payload, byte for byte (R2).
    pub fn payload(&self) -> &Bytes {
        &self.0.delivery.payload
    }

    /// The number of this delivery of the job, from 1.
    pub fn attempt(&self) -> u32 {
        self.0.delivery.attempt()
    }

    /// The number of deliveries after which a failed job is buried.
    pub fn max_attempts(&self) -> NonZeroU16 {
        self.0.delivery.max_attempts
    }

    /// Whether a failure of this attempt buries the job.
    pub fn is_last_attempt(&self) -> bool {
        self.0.delivery.is_last_attempt()
    }

    /// Whether an earlier attempt was counted, so that it may have run, in part or whole.
    ///
    /// `false` does not mean that no handler has run the job. An attempt that a shutdown
    /// cut off or that was postponed is not counted, and after a redrive the count begins
    /// anew (R11). See [`already_done`](crate::Worker::already_done).
    pub fn is_redelivery(&self) -> bool {
        self.0.delivery.is_redelivery()
    }

    /// The name of the job's kind, which is its header [`KIND_HEADER`]. `None` for a job
    /// without that header, such as one that another client pushed.
    pub fn kind(&self) -> Option<&str> {
        self.headers().get(KIND_HEADER)
    }

    /// The headers of the job.
    pub fn headers(&self) -> &Headers {
        &self.0.delivery.headers
    }

    /// The batch of which the job is a piece. `None` for a job without a batch.
    pub fn batch(&self) -> Option<&BatchId> {
        self.0.delivery.batch.as_ref()
    }

    /// When the job was pushed, by the store's clock (R27). It is the same in each attempt.
    /// `None` if the producer does not record this time, as other clients and early
    /// versions of relq do not.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use relq_worker::{Failure, JobContext};
    ///
    /// /// Sends a code that is valid for ten minutes, or nothing.
    /// async fn send_code(job: JobContext) -> Result<(), Failure> {
    ///     let pushed = job.enqueued_at().map(SystemTime::from);
    ///     let age = pushed.and_then(|pushed| pushed.elapsed().ok());
    ///     if age.is_some_and(|age| age > Duration::from_secs(600)) {
    ///         return Err(Failure::discard("the code is not valid any more"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    pub fn enqueued_at(&self) -> Option<Timestamp> {
        self.0.delivery.enqueued_at
    }

    /// The priority of the job.
    pub fn priority(&self) -> Priority {
        self.0.delivery.priority
    }

    /// How long the lease runs from the claim and from each extension. The worker extends
    /// it while the handler runs.
    pub fn lease(&self) -> Duration {
        self.0.delivery.lease
    }

    /// Completes when the lease is lost, or may be, or when the job is cancelled. The
    /// handler then has the worker's grace time to end, and its result does not count.
    ///
    /// On a time-out, and at the end of the grace time of a shutdown, the worker drops the
    /// handler's future at once. Only code outside of the future, such as a task with a
    /// [`token`](Self::token), is then asked to stop.
    pub async fn cancelled(&self) {
        self.0.token.cancelled().await;
    }

    /// Why the handler should stop; `None` while it should continue.
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.0.cancellation.get().copied()
    }

    /// A token that fires when the handler should stop, for code outside of the handler's
    /// future, such as work that blocks a thread:
    ///
    /// ```
    /// use relq_worker::{Failure, JobContext};
    ///
    /// async fn resize(job: JobContext) -> Result<(), Failure> {
    ///     let (stop, image) = (job.token(), job.payload().clone());
    ///     let resizing = tokio::task::spawn_blocking(move || {
    ///         for row in image.chunks(4096) {
    ///             if stop.is_cancelled() {
    ///                 return Err(Failure::retry("the handler was asked to stop"));
    ///             }
    ///             resize_row(row);
    ///         }
    ///         Ok(())
    ///     });
    ///     resizing.await?
    /// }
    /// # fn resize_row(_: &[u8]) {}
    /// ```
    ///
    /// It fires for the reasons of [`Cancellation`]. To cancel the token itself does not
    /// affect the job.
    pub fn token(&self) -> CancellationToken {
        self.0.token.child_token()
    }

    /// Asks the handler to stop. If this is called repeatedly, the first reason is
    /// kept.
    pub(crate) fn cancel(&self, why: Cancellation) {
        self.0.cancellation.get_or_init(|| why);
        self.0.token.cancel();
    }

    /// Marks the lease as ended: the worker will not settle the job, and asks the
    /// handler to stop. Returns whether the lease had not ended before.
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

    /// Whether the lease may have expired by `now`, so that another worker may hold the
    /// job.
    pub(crate) fn may_be_over(&self, now: Duration) -> bool {
        self.until() <= now
    }

    /// Sets the end of the lease, but never to an earlier time: a reply to an older
    /// call may arrive late.
    pub(crate) fn extend_until(&self, until: Duration) {
        self.0.until_us.fetch_max(micros(until), Relaxed);
    }

    /// Marks that a call with the job's settlement is pending. Until `settling_failed`
    /// is called, the store may have ended the job although its reply has not arrived.
    pub(crate) fn settling(&self) {
        self.0.is_settling.store(true, Relaxed);
    }

    /// Marks that the call has failed. A thread that sees this also sees an earlier
    /// `perhaps_settled`.
    pub(crate) fn settling_failed(&self) {
        self.0.is_settling.store(false, Release);
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.0.is_settling.load(Acquire)
    }

    /// Marks that a call which has failed may have settled the job.
    pub(crate) fn perhaps_settled(&self) {
        self.0.is_perhaps_settled.store(true, Relaxed);
    }

    pub(crate) fn is_perhaps_settled(&self) -> bool {
        self.0.is_perhaps_settled.load(Relaxed)
    }

    pub(crate) fn timing(&self) -> &Timing {
        &self.0.timing
    }

    pub(crate) fn record(&self) -> Option<&AttemptRecord> {
        self.0.record.as_ref()
    }

    /// Returns the address of the job in memory. It identifies the job as long as the
    /// worker holds it.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply to an older heartbeat may arrive after the reply to a newer one.
    #[test]
    fn a_reply_to_an_older_call_does_not_shorten_the_lease() {
        let (early, late) = (Duration::from_secs(20), Duration::from_secs(30));
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::held_until(Delivery::new(receipt, "", early), early);

        job.extend_until(late);
        job.extend_until(early);

        assert_eq!(job.until(), late, "the end of the lease");
    }

    /// R6: at the stated end of its lease another worker may run the job.
    #[test]
    fn a_lease_may_be_over_at_its_end() {
        let until = Duration::from_secs(30);
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::held_until(Delivery::new(receipt, "", until), until);

        assert!(!job.may_be_over(until - Duration::from_micros(1)), "before its end");
        assert!(job.may_be_over(until), "at its end");
    }

    /// B2: a handler can read the batch of its piece.
    #[test]
    fn a_piece_has_its_batch() {
        let receipt = Receipt::new(JobId::new("piece").unwrap(), 1, "token");
        let mut delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        let batch = BatchId::new("report").unwrap();
        delivery.batch = Some(batch.clone());

        assert_eq!(JobContext::new(delivery).batch(), Some(&batch), "its batch");
    }
}
