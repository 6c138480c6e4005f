//! The events of a worker, and the trait of the code that receives them.
//!
//! An [`Observer`] counts, measures or reports what a worker does. It changes nothing: it
//! receives events, and returns nothing. [`Worker::observe`](crate::Worker::observe) adds
//! it to a worker.
//!
//! ```
//! use std::sync::Arc;
//! use relq_worker::observer::{Buried, Observer};
//! use relq_worker::{Failure, JobContext, Worker, WorkerError};
//!
//! /// Reports each job that fails for good.
//! struct Alarm;
//!
//! impl Observer for Alarm {
//!     fn buried(&self, event: &Buried<'_>) {
//!         eprintln!("job {} is dead: {}", event.job.id(), event.error);
//!     }
//! }
//!
//! # async fn example(
//! #     queue: Arc<dyn relq_core::ReliableQueue>,
//! # ) -> Result<(), WorkerError> {
//! let send = async |_: JobContext| Err::<(), _>(Failure::dead("no such address"));
//! Worker::new(queue).observe(Alarm).run(send).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # The events of one job
//!
//! ```text
//!  claimed --> started --> ended
//!     |           |        ^   \ buried, if the job is dead now
//!     |           v        |
//!     |       lease_lost --+
//!     +--------------------+  a job that was not started is given back or retried
//! ```
//!
//! `ended` is called once for each claimed job, when its result is known: after the store
//! has confirmed it, or when the worker knows that it cannot be confirmed. It is not
//! called if the future of [`Worker::run`](crate::Worker::run) is dropped, because then
//! the worker does nothing any more.
//!
//! # What an observer must not do
//!
//! A worker calls its observers on its own tasks and threads, and waits until they
//! return. An observer that blocks delays claims, settlements and heartbeats, and so can
//! make the worker lose its leases. It should add to a counter, or send to a channel
//! whose receiver does the rest. Several threads may call it at the same time.
//!
//! A panic of an observer is caught and logged. It changes nothing for the jobs, and the
//! observer receives the next event as before.

use std::time::Duration;

use relq_core::{
    Disposition, Error,
    error::Operation,
    outcome::{Recovered, Released},
};

use crate::{JobContext, context::LeaseEnd};

/// Receives the events of a worker. Every method does nothing unless it is overridden.
pub trait Observer: Send + Sync + 'static {
    /// Called when a claim has returned jobs, before any of them starts.
    fn claimed(&self, _event: &Claimed) {}

    /// Called when the span of an attempt is created, before it is entered. Code that
    /// exports spans can still set the parent of the span, as `relq-otel` does. Not called
    /// if the subscriber of `tracing` does not want the span.
    fn span_opened(&self, _event: &SpanOpened<'_>) {}

    /// Called when the attempt of a job starts, on the task of its handler: before the
    /// handler and before an [`already_done`](crate::Worker::already_done) check.
    fn started(&self, _event: &Started<'_>) {}

    /// Called once for each claimed job, when its result is known.
    fn ended(&self, _event: &Ended<'_>) {}

    /// Called for each job that this worker buries, directly after
    /// [`ended`](Self::ended). A job of a dead worker is buried by a recovery:
    /// [`recovered`](Self::recovered) has the number of such jobs.
    ///
    /// Not called for a job that has expired (R17) or that cannot be read (R3). The store
    /// buries these inside of a call, mostly a claim, whose reply does not report them:
    /// watch [`Stats::dead`](relq_core::Stats::dead).
    fn buried(&self, _event: &Buried<'_>) {}

    /// Called when a heartbeat finds that a lease is lost or may be, often while the
    /// handler still runs. The thread of the heartbeats calls it, so it may arrive at the
    /// same time as [`ended`](Self::ended). If only the reply to a settlement reports the
    /// loss, or if a settlement that failed may have ended the lease, `ended` is called and
    /// this method is not.
    fn lease_lost(&self, _event: &LeaseLost<'_>) {}

    /// Called when a recovery has changed the state of jobs: of jobs whose worker died,
    /// or of scheduled jobs that are due. Often only [`Recovered::promoted`] is not zero.
    /// All workers of a queue recover jobs, and the recovery of each job is reported to
    /// the observers of one of them (R12).
    fn recovered(&self, _event: &Recovered) {}

    /// Called when the worker was released at the end of its shutdown. `event.jobs` is
    /// the number of jobs that the store still held for the worker and that are ready
    /// again: jobs of a claim whose reply was lost, and jobs that the worker could not
    /// settle. No event of a job follows.
    fn released(&self, _event: &Released) {}

    /// Called for each call to the store that failed. The worker repeats such a call, or
    /// ends with its error.
    fn call_failed(&self, _event: &CallFailed<'_>) {}
}

/// A claim has returned jobs.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Claimed {
    /// The number of jobs, at least 1.
    pub jobs: usize,
    /// How long the claim took, which includes the time for which it waited for a job.
    pub took: Duration,
}

/// The span of an attempt was created. Its name is `job`, and its fields are the `id`, the
/// `attempt` and the `kind` of the job, of which it has at most the first
/// [`MAX_KIND_BYTES`](crate::MAX_KIND_BYTES). It also has the fields `otel.name` and
/// `otel.kind` without values, which an observer may record.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SpanOpened<'a> {
    /// The job.
    pub job: &'a JobContext,
    /// The span. It is closed when the attempt has ended.
    pub span: &'a tracing::Span,
}

/// The attempt of a job starts.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Started<'a> {
    /// The job.
    pub job: &'a JobContext,
    /// The time between the reply to the job's claim and the start. It is long if
    /// handlers block the threads of the runtime.
    pub waited: Duration,
    /// The time between the push of the job and the start: it includes the job's delay,
    /// and its earlier attempts. The push is timed by the store's clock (R27) and the
    /// start by the worker's, so a difference of the two clocks makes this time wrong.
    /// `None` if the time of the push is not known.
    pub since_push: Option<Duration>,
}

/// The result of a claimed job is known.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Ended<'a> {
    /// The job.
    pub job: &'a JobContext,
    /// The result: for example, the job is done, or is retried.
    pub outcome: JobOutcome<'a>,
    /// How long the attempt ran, without the time until its result was settled. `None`
    /// if it was not started.
    pub ran: Option<Duration>,
}

/// A job was buried: it is a dead letter now.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Buried<'a> {
    /// The job.
    pub job: &'a JobContext,
    /// The error of its last attempt, as the store keeps it.
    pub error: &'a str,
}

/// A lease was lost, or may be: another worker may run the job.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LeaseLost<'a> {
    /// The job.
    pub job: &'a JobContext,
}

/// A call to the store has failed.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallFailed<'a> {
    /// The operation that failed. A call that settles and claims consists of two
    /// operations, and each that fails has an event of its own.
    pub operation: Operation,
    /// The error. [`Error::full_message`] has its text and its causes.
    pub error: &'a Error,
}

/// Why a claimed job ended. Each has its count in the [`Summary`](crate::Summary).
///
/// ```
/// use relq_worker::observer::{Ended, JobOutcome, Observer};
///
/// /// Logs each attempt that failed.
/// struct FailedAttempts;
///
/// impl Observer for FailedAttempts {
///     fn ended(&self, event: &Ended<'_>) {
///         let id = event.job.id();
///         match event.outcome {
///             JobOutcome::Retried { after, error } => {
///                 tracing::warn!(%id, ran = ?event.ran, ?after, "failed: {error}");
///             }
///             JobOutcome::Buried { error } => tracing::error!(%id, "dead: {error}"),
///             _ => {}
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobOutcome<'a> {
    /// The job was acknowledged.
    Done,
    /// The attempt failed, and the job will be retried.
    Retried {
        /// How long the job waits for its next attempt.
        after: Duration,
        /// Why the attempt failed.
        error: &'a str,
    },
    /// The job failed for good: it was buried at once, or after its last attempt.
    Buried {
        /// Why the attempt failed.
        error: &'a str,
    },
    /// The job was removed without having succeeded, because its handler asked for it.
    Discarded,
    /// The job was postponed by its handler without counting the attempt (R26).
    Postponed {
        /// How long until the job is ready again.
        after: Duration,
    },
    /// The job was given back without counting the attempt: at shutdown (R24), or because
    /// its lease may have expired before it could start.
    GivenBack,
    /// An operator cancelled the job while the worker held it.
    Cancelled,
    /// The job was not settled: its lease was lost, or the store did not accept the
    /// settlement in time. The job is delivered again.
    Lost,
    /// The job may be settled: the store may have applied a call whose reply never
    /// arrived, or has applied one that too few replicas confirmed. If the store did not,
    /// or a fail-over loses the call, the job is delivered again.
    Uncertain,
}

impl<'a> JobOutcome<'a> {
    /// The outcome in one word, such as `given_back`, for a label or a log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Retried { .. } => "retried",
            Self::Buried { .. } => "buried",
            Self::Discarded => "discarded",
            Self::Postponed { .. } => "postponed",
            Self::GivenBack => "given_back",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
            Self::Uncertain => "uncertain",
        }
    }

    /// The outcome of a job whose settlement the store has applied.
    pub(crate) fn of_settled(job: &JobContext, disposition: &'a Disposition) -> Self {
        match disposition {
            Disposition::Done | Disposition::DoneWith { .. } => Self::Done,
            Disposition::Retry { error, .. } if job.is_last_attempt() => {
                Self::Buried { error }
            }
            Disposition::Retry { after, error } => {
                Self::Retried { after: *after, error }
            }
            Disposition::Dead { error } => Self::Buried { error },
            Disposition::Discard => Self::Discarded,
            Disposition::Postpone { after } => Self::Postponed { after: *after },
            Disposition::GiveBack => Self::GivenBack,
        }
    }
}

impl From<LeaseEnd> for JobOutcome<'_> {
    fn from(end: LeaseEnd) -> Self {
        match end {
            LeaseEnd::Lost => Self::Lost,
            LeaseEnd::Cancelled => Self::Cancelled,
        }
    }
}
