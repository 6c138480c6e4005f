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
    operator::{Audit, Cancelled, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
};

/// A queue that loses no job: a claimed job is leased, and it comes back if it is not
/// settled while the lease runs.
///
/// All methods may be called at once from many tasks. None hangs for ever (R21). A
/// future that is dropped leaves the queue in a state that another call or
/// [`recover`](Self::recover) sets right (R22).
#[async_trait]
pub trait ReliableQueue: Debug + Display + Send + Sync {
    /// The options and declarations of this backend. They do not change.
    fn capabilities(&self) -> &Capabilities;

    /// Stores all of `jobs` or none (R5) and returns a result for each, in order.
    ///
    /// With a `token` the call can be repeated within five minutes of the first: it
    /// then stores nothing and returns the first result (R4).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a job that breaks a limit or more jobs than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call), [`Error::Unsupported`]
    /// for an option that is not supported. In both cases nothing was sent.
    /// [`Error::Invalid`] also for a token of an earlier call with another number of
    /// jobs; nothing was stored then.
    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error>;

    /// Leases up to `ask.max` ready jobs to `ask.worker` (R6), waiting up to `ask.wait`
    /// when nothing is ready. An empty list is not an error.
    ///
    /// If the caller drops the future, jobs may stay leased until the lease expires or
    /// the worker is released.
    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error>;

    /// Applies the settlements of jobs that a worker holds, and returns a result for
    /// each, in order. One lost lease does not affect the others (R7).
    ///
    /// A call that failed can be made again with the same settlements: those that were
    /// applied the first time return `LeaseLost`.
    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error>;

    /// Settles, then claims, in one round trip where the backend can. Never waits:
    /// `ask.wait` is ignored.
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

    /// The heartbeat: the leases of `held` run for `lease` from now, and the result
    /// says which are lost or cancelled.
    ///
    /// `held` lists all jobs that the worker knows it holds with leases of this length.
    /// Jobs that are leased to it without its knowledge are not extended (R10).
    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error>;

    /// Gives back all jobs that the worker holds, also those whose reply it never
    /// received, to the front of the queue and without counting an attempt (R24).
    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error>;

    /// Recovers up to `page` jobs: it makes jobs whose lease has expired and due jobs
    /// ready (R9). It also continues unfinished work on batches (B5, B6, B7). The
    /// result says whether there is more.
    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error>;

    /// Another queue on the same store that shares no connection with this one. Its
    /// connection driver, if it has one, runs on the runtime of the caller. A heartbeat
    /// on its own thread needs this.
    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error>;

    /// The same queue with its batches, where the backend supports
    /// [`Capability::Batches`](crate::capabilities::Capability::Batches); `None` where it does not.
    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        None
    }
}

/// The calls of an operator on a queue. Workers do not need it.
#[async_trait]
pub trait Operator: Debug + Send + Sync {
    /// How many jobs are in each state (R23).
    async fn stats(&self) -> Result<Stats, Error>;

    /// One page of the jobs in a state, in the order in which they will be served.
    ///
    /// Pages are read one by one, so jobs that move between two calls may be
    /// missing or shown twice.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error>;

    /// Makes dead jobs ready again, at the back of the queue and with no attempt
    /// counted. A job whose unique key another job holds stays dead (R16).
    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error>;

    /// Removes dead jobs and returns their number.
    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error>;

    /// Removes every job in every state, every batch and all remembered ids and tokens;
    /// returns the number of jobs. Workers that hold a job lose its lease.
    async fn purge(&self) -> Result<u64, Error>;

    /// Ends a scheduled, ready or leased job for good. The worker that holds a leased
    /// job is notified at its next heartbeat.
    ///
    /// A backend without an index searches for the job. It may miss one that workers
    /// move three times or more during the search; pause the queue first where that
    /// matters.
    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error>;

    /// Stops claims until `resume`. Leased jobs continue. Pausing a paused queue
    /// changes nothing.
    async fn pause(&self) -> Result<(), Error>;

    /// Allows claims again. Resuming a running queue changes nothing.
    async fn resume(&self) -> Result<(), Error>;

    /// Checks that each job is in exactly one state, and reports each one that is not
    /// (R23). It reads everything, so it is meant for tests and repairs, not for a
    /// dashboard.
    async fn audit(&self) -> Result<Audit, Error>;
}

/// The worker's and the operator's calls in one object, as the facade returns it.
pub trait Queue: ReliableQueue + Operator {}

impl<T: ReliableQueue + Operator> Queue for T {}
