//! The traits that a backend implements: one for workers, one for operators.

use std::{
    fmt::{Debug, Display},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;

use crate::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, Receipt, Settlement,
    Stats, WorkerId,
    batch::BatchQueue,
    capabilities::Capabilities,
    environment::{Clock as _, SystemClock},
    operator::{
        Audit, Cancelled, InspectQueue, Page, PeekRequest, Redriven, RestoreQueue,
        Selection, WorkerReport,
    },
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::ResultQueue,
    schedule::ScheduleQueue,
};

/// How long the default of [`ReliableQueue::wait_for_jobs`] sleeps if the backend has no
/// lateness. A worker on several queues claims again after each wait, so without a pause it
/// would claim all the time.
const PAUSE_WITHOUT_LATENESS: Duration = Duration::from_millis(100);

/// A queue that loses no job: a claimed job is leased, and it comes back if it is not
/// settled while the lease runs.
///
/// Many tasks may call all methods at the same time. No call waits for ever (R21). If a
/// caller drops a future, the next call or [`recover`](Self::recover) repairs the
/// queue's state (R22).
///
/// Applications mostly use the worker of the crate `relq-worker`, which also extends the
/// leases, retries failed jobs and shuts down cleanly. Without it, a worker is a loop of
/// these calls:
///
/// ```
/// use std::{num::NonZeroU32, time::Duration};
/// use relq_core::{ClaimRequest, Disposition, Error, ReliableQueue};
/// use relq_core::{Settlement, WorkerId, outcome::Settled};
///
/// /// Runs up to ten jobs, and settles all of them in one call.
/// async fn work_once(queue: &dyn ReliableQueue, me: &WorkerId) -> Result<(), Error> {
///     let ten = NonZeroU32::new(10).expect("not zero");
///     queue.recover(ten).await?; // jobs of dead workers, and jobs that are due
///     let ask = ClaimRequest::new(me.clone(), Duration::from_secs(30)).max(ten);
///     let jobs = queue.claim(&ask.wait(Duration::from_secs(5))).await?;
///     let mut done = Vec::new();
///     for job in jobs {
///         println!("{:?}", job.payload); // the work, which must end within the lease
///         done.push(Settlement::new(job.receipt, Disposition::Done));
///     }
///     let settled = queue.settle(&done).await?;
///     let lost = settled.iter().filter(|it| **it == Settled::LeaseLost).count();
///     println!("{lost} jobs may run again, because their leases had expired");
///     Ok(())
/// }
/// ```
///
/// # Errors
/// Every call that reaches the store may fail with an error of the store, such as
/// [`Error::Unavailable`], [`Error::Interrupted`] or [`Error::Denied`]. The methods name
/// only the errors of their arguments. The store is not asked in these cases, unless the
/// method says so.
#[async_trait]
pub trait ReliableQueue: Debug + Display + Send + Sync {
    /// Returns the options, properties and limits of this backend. They do not change.
    fn capabilities(&self) -> &Capabilities;

    /// Stores all of `jobs` or none (R5) and returns a result for each, in order.
    ///
    /// With a `token` the call can be repeated within five minutes of the first: it
    /// then stores nothing and returns the first result (R4).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a job that breaks a limit or more jobs than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call),
    /// [`Error::Unsupported`] for an option that is not supported. In both cases
    /// nothing was sent. [`Error::Invalid`] also for a token of an earlier call with
    /// another number of jobs; nothing was stored then. [`Error::CannotFollow`] if the
    /// job that one of them is to [follow](crate::followers) is not known, was not done,
    /// or has too many followers; then nothing was stored, either (R30).
    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error>;

    /// Returns the part of the queue to which the id and the unique key of `job` belong:
    /// all named jobs of one [`push`](Self::push) must belong to one part. `None` if every
    /// call may have the job. This makes no call to the store.
    ///
    /// The default is `None`, for a queue that has no parts.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the id belongs to one part and the unique key to another: no
    /// call can push the job.
    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        let _ = job;
        Ok(None)
    }

    /// Leases up to `ask.max` ready jobs to `ask.worker` (R6), and waits up to
    /// `ask.wait` when nothing is ready. It returns at most
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call) jobs, even
    /// if `ask.max` is larger. An empty list is not an error.
    ///
    /// If the caller drops the future, jobs may stay leased until the lease expires or
    /// the worker is released.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a lease under a millisecond, and for a lease or wait above
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION).
    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error>;

    /// Returns when a claim may find a job, or after `limit`. It leases nothing, and it
    /// may return early although no job is ready.
    ///
    /// A caller that waits on several queues at once calls this method after a claim
    /// without a wait has found nothing. Unlike the future of [`claim`](Self::claim),
    /// this one can be dropped without an effect on any job.
    ///
    /// The default sleeps for [`Capabilities::lateness`], or for 100 ms if that is zero,
    /// and for at most `limit`. It sleeps by the clock of the machine, because it knows no
    /// [`Environment`](crate::environment::Environment). A backend overrides it if it can
    /// wake a waiting claim, or sleeps by another clock.
    ///
    /// # Errors
    /// An error of the store, which then cannot say whether a job is ready. A backend
    /// that reconnects by itself need not return this error: the next claim does.
    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        let lateness = self.capabilities().lateness;
        let pause = if lateness.is_zero() { PAUSE_WITHOUT_LATENESS } else { lateness };
        SystemClock.sleep(limit.min(pause)).await;
        Ok(())
    }

    /// Applies the settlements of jobs that a worker holds, and returns a result for
    /// each, in order. One lost lease does not affect the others (R7).
    ///
    /// A call that failed can be made again with the same settlements: those that were
    /// applied the first time return `LeaseLost`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more settlements than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call).
    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error>;

    /// Settles jobs and then claims others, in one round trip if the backend is able
    /// to. The claim never waits: it ignores `ask.wait`. Each of the two may fail while
    /// the other succeeds; the errors are those of [`settle`](Self::settle) and
    /// [`claim`](Self::claim).
    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let settled = self.settle(done).await;
        let at_once = ClaimRequest { wait: Duration::ZERO, ..ask.clone() };
        let claimed = self.claim(&at_once).await;
        SettledAndClaimed { settled, claimed }
    }

    /// Extends the leases of `held`, so that they run for `lease` from now. The result
    /// says which leases are lost and which jobs were cancelled.
    ///
    /// `held` lists all jobs that the worker knows it holds with leases of this length.
    /// Jobs that are leased to it without its knowledge, because the reply to a claim
    /// was lost, are not extended (R10).
    ///
    /// ```
    /// use std::time::Duration;
    /// use relq_core::{Error, Receipt, ReliableQueue, WorkerId, outcome::Extended};
    ///
    /// /// One heartbeat. Returns the receipts of the jobs whose handlers must stop.
    /// async fn beat(
    ///     queue: &dyn ReliableQueue,
    ///     me: &WorkerId,
    ///     held: &[Receipt],
    /// ) -> Result<Vec<Receipt>, Error> {
    ///     let extended = queue.extend(me, held, Duration::from_secs(30)).await?;
    ///     let ended = held.iter().zip(extended).filter(|(_, extended)| {
    ///         matches!(extended, Extended::Cancelled | Extended::LeaseLost)
    ///     });
    ///     Ok(ended.map(|(receipt, _)| receipt.clone()).collect())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a lease under a millisecond or above
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION), and for more receipts than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call).
    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error>;

    /// Gives back all jobs that are leased to the worker, even those whose claim reply
    /// it never received. They go to the front of the queue, and no attempt is counted
    /// (R24). The worker is no longer listed as running (R33).
    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error>;

    /// Reports that a worker runs, so that [`InspectQueue::workers`] lists it (R33). A
    /// worker calls it at its start and then every
    /// [`REPORT_INTERVAL`](crate::operator::REPORT_INTERVAL), also while it is idle.
    ///
    /// A report that fails has no effect on any job or lease. By default, and without
    /// [`Capability::Inspect`](crate::capabilities::Capability::Inspect), nothing is
    /// stored.
    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        let _ = report;
        Ok(())
    }

    /// Recovers up to `page` jobs (R9). A job whose lease has expired becomes ready
    /// again, or dead after its last attempt. A scheduled job that is due becomes
    /// ready. The call also continues unfinished work on batches (B5, B6, B7). The
    /// result says whether more jobs are left to recover:
    ///
    /// ```
    /// use std::{num::NonZeroU32, time::Duration};
    /// use relq_core::{Error, ReliableQueue};
    ///
    /// /// Recovers all jobs that can be recovered now. Returns when to do it again.
    /// async fn recover_all(queue: &dyn ReliableQueue) -> Result<Duration, Error> {
    ///     let hundred = NonZeroU32::new(100).expect("not zero");
    ///     let most = Duration::from_secs(15);
    ///     loop {
    ///         let recovered = queue.recover(hundred).await?;
    ///         if !recovered.more {
    ///             return Ok(recovered.next_in.unwrap_or(most).min(most));
    ///         }
    ///     }
    /// }
    /// ```
    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error>;

    /// Opens another handle to the queue, which shares no connection with this one. A
    /// heartbeat that runs on its own thread needs such a handle. If the connection has
    /// a driver task, the task runs on the async runtime of the caller.
    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error>;

    /// Returns this queue as a [`BatchQueue`]. Returns `None` if the backend does not
    /// support [`Capability::Batches`](crate::capabilities::Capability::Batches).
    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        None
    }

    /// Returns this queue as a [`ScheduleQueue`]. Returns `None` if the backend does not
    /// support [`Capability::Schedules`](crate::capabilities::Capability::Schedules).
    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        None
    }

    /// Returns this queue as a [`ResultQueue`]. Returns `None` if the backend does not
    /// support [`Capability::Results`](crate::capabilities::Capability::Results).
    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        None
    }
}

/// The calls with which an operator inspects and controls a queue. Workers do not need
/// them.
///
/// # Errors
/// Every call may fail with an error of the store, such as [`Error::Unavailable`] or
/// [`Error::Denied`]. The methods name only their other errors.
///
/// ```
/// use std::num::NonZeroU32;
/// use relq_core::operator::{JobState, PeekRequest, Selection};
/// use relq_core::{Error, Operator};
///
/// /// Prints why jobs died, and makes those that timed out ready again.
/// async fn revive(queue: &dyn Operator) -> Result<(), Error> {
///     println!("{} jobs are dead", queue.stats().await?.dead);
///
///     let hundred = NonZeroU32::new(100).expect("not zero");
///     let mut ask = PeekRequest::new(JobState::Dead, hundred);
///     let mut timed_out = Vec::new();
///     loop {
///         let page = queue.peek(&ask).await?;
///         for job in page.jobs {
///             let error = job.last_error.unwrap_or_default();
///             println!("{:?} after {} attempts: {error}", job.id, job.attempt);
///             timed_out.extend(job.id.filter(|_| error.contains("timed out")));
///         }
///         let Some(next) = page.next else { break };
///         ask = ask.after(next);
///     }
///     let redriven = queue.redrive(&Selection::Only(timed_out)).await?;
///     println!("{} jobs are ready again", redriven.moved);
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait Operator: Debug + Send + Sync {
    /// Counts the jobs in each state (R23).
    async fn stats(&self) -> Result<Stats, Error>;

    /// Counts the jobs of each part of the queue in each state, in the order of the
    /// parts. A queue that has no parts counts as one part.
    ///
    /// # Errors
    /// The error of the first part that fails.
    async fn stats_by_part(&self) -> Result<Vec<Stats>, Error> {
        Ok(vec![self.stats().await?])
    }

    /// Returns one page of the jobs in a state, in the order in which they will be
    /// delivered, or in the opposite one
    /// ([`newest_first`](PeekRequest::newest_first)).
    ///
    /// Each call reads one page, so jobs that move between two calls may be missing or
    /// appear twice. R31 says which jobs a listing cannot miss.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that another backend returned, if this backend
    /// notices it, and for one of the other order. [`Error::Unsupported`] for a listing
    /// newest first without
    /// [`Capability::Inspect`](crate::capabilities::Capability::Inspect); nothing was
    /// sent then.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error>;

    /// Makes dead jobs ready again, at the back of the queue and with no attempt
    /// counted. A job whose unique key another job holds stays dead (R16).
    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error>;

    /// Removes dead jobs and returns their number. The jobs that follow a removed one are
    /// cancelled (R30).
    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error>;

    /// Removes every job in every state, every batch, all kept results, and all
    /// remembered ids and push tokens. Returns the number of removed jobs. Workers that
    /// hold a job lose its lease. Schedules stay (R28).
    async fn purge(&self) -> Result<u64, Error>;

    /// Removes a scheduled, ready or leased job. The worker that holds a leased job is
    /// notified at its next heartbeat. The jobs that follow the removed one are also
    /// cancelled (R30).
    ///
    /// A backend without an index of jobs must search for the job. The search may miss
    /// a job that workers move three times or more meanwhile. To prevent that, pause
    /// the queue first.
    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error>;

    /// Stops claims until `resume`. Workers can finish the jobs that they hold. Pausing
    /// a paused queue changes nothing.
    async fn pause(&self) -> Result<(), Error>;

    /// Allows claims again. Resuming a running queue changes nothing.
    async fn resume(&self) -> Result<(), Error>;

    /// Checks that each job is in exactly one state, and reports each job that is not
    /// (R23). It reads the whole queue, so it is meant for tests and repairs, not for a
    /// dashboard.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the audit needs a temporary file that cannot be written.
    async fn audit(&self) -> Result<Audit, Error>;

    /// Returns this queue as an [`InspectQueue`]. Returns `None` if the backend does not
    /// support [`Capability::Inspect`](crate::capabilities::Capability::Inspect).
    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        None
    }

    /// Returns this queue as a [`RestoreQueue`]. Returns `None` if the backend does not
    /// support [`Capability::Restore`](crate::capabilities::Capability::Restore).
    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        None
    }
}

/// A queue with the calls of workers and of operators. `relq::connect` returns this
/// type.
pub trait Queue: ReliableQueue + Operator {}

impl<T: ReliableQueue + Operator> Queue for T {}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Waker},
        thread,
        time::Instant,
    };

    use super::*;
    use crate::operator::listed::Listed;

    const HOUR: Duration = Duration::from_secs(3600);

    /// How long the default wait on a queue of this lateness takes.
    fn waited(lateness: Duration, limit: Duration) -> Duration {
        let (mut queue, began) = (Listed::new(Vec::new()), Instant::now());
        queue.capabilities.lateness = lateness;
        let mut wait = queue.wait_for_jobs(limit);
        let mut context = Context::from_waker(Waker::noop());
        while wait.as_mut().poll(&mut context).is_pending() {
            let is_too_long = began.elapsed() > Duration::from_secs(20);
            assert!(!is_too_long, "a wait for {limit:?}, late by {lateness:?}");
            thread::sleep(Duration::from_millis(1));
        }
        began.elapsed()
    }

    /// R21: a caller that claims again after each wait is not busy all the time, although
    /// its queue has no lateness.
    #[test]
    fn a_wait_on_a_queue_without_lateness_lasts() {
        assert!(waited(Duration::ZERO, HOUR) >= PAUSE_WITHOUT_LATENESS);
    }

    /// A delayed job may be late by the lateness of its backend, so it is time to claim after
    /// that.
    #[test]
    fn a_wait_lasts_as_long_as_jobs_may_be_late() {
        let lateness = PAUSE_WITHOUT_LATENESS * 3;

        assert!(waited(lateness, HOUR) >= lateness, "it ends before the lateness");
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        waited(HOUR, Duration::from_millis(1));
        waited(Duration::ZERO, Duration::ZERO);
    }
}
