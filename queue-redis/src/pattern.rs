//! How to write a backend on Redis: the parts that a pattern supplies, and the queue
//! that it gets.
//!
//! A backend on Redis is a *pattern*: a way to store ready and leased jobs in Redis.
//! All patterns share the rest, which is in [`RedisQueue`].
//!
//! ```text
//!  ReliableQueue, Operator   the calls of workers and operators
//!         |
//!   RedisQueue<P>            the order of steps, batches of calls, one
//!         |                  error for several commands (R21), waiting,
//!         |                  recovery of the bookkeeping
//!     P: Pattern             where ready and leased jobs are stored
//!         |
//!     Bookkeeping            scheduled and dead jobs, unique keys, ids,
//!         |                  tokens
//!     Conn                   a connection that reconnects by itself
//! ```
//!
//! # What a pattern supplies
//!
//! | part | what it says |
//! |---|---|
//! | `pattern.lua` | how the bookkeeping's scripts store, find and remove ready and leased jobs: see [`bookkeeping`](crate::bookkeeping) |
//! | its own scripts | claim, finish, recover, stats, purge, and what else it needs |
//! | a [`PatternConfig`] | the server, and the options of the backend |
//! | a type that implements [`Pattern`] | typed calls of all that |
//!
//! Each pattern implements the required methods in its own way. The provided methods have
//! a default that fits most patterns. A pattern overrides them when jobs have keys of
//! their own, when something follows the end of a job, or when it has batches.
//!
//! A lease has two forms. A receipt carries its *token*, and no two leases share a
//! token (R7). Scripts take the *lease*, which [`Pattern::lease`] builds from the token
//! and the job's id.
//!
//! # What a pattern gets
//!
//! `pub type MyQueue = RedisQueue<MyPattern>` is a queue with:
//!
//! * `MyQueue::connect(config, queue)`, which refuses the queue of another backend (R25);
//! * all of [`ReliableQueue`](relq_core::ReliableQueue) and
//!   [`Operator`](relq_core::Operator): limits are checked before anything is sent,
//!   calls that belong together share a round trip, and a call of several commands says
//!   so if one was done and another was refused;
//! * claims that promote due jobs, bury jobs that cannot be delivered, and wait. A wait
//!   ends at a notification, at the next due time, or at the latest after
//!   [`Capabilities::lateness`](relq_core::capabilities::Capabilities::lateness).
//!
//! # What a pattern must keep
//!
//! A future may be dropped at every `await` (R22). So each step that moves a job is one
//! script or one command, and the state that a pattern keeps in memory between two
//! steps is only a hint. The suite `relq-conformance` judges a pattern like any other
//! backend.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use redis::Cmd;
use relq_core::{
    ClaimRequest, Error, JobId, QueueName, Receipt, Stats, WorkerId,
    batch::BatchQueue,
    capabilities::Capabilities,
    environment::Timestamp,
    error::Operation,
    operator::{JobView, Page, PeekRequest},
    outcome::{Recovered, Released},
};

use crate::{
    Conn, Owner, PartialEffect, RedisConfig, RedisQueue, Script,
    bookkeeping::{
        Beat, Bookkeeping, ClaimRound, Ended, Finish, FinishedAndClaimed, Seen, Step,
        WaitHint,
    },
    queue,
};

pub use crate::queue::{
    BatchPattern, CancelSearch, cancel_by_search, cancel_leased, deliver,
};

/// The configuration with which a queue of a pattern is opened.
pub trait PatternConfig: Clone + Send + Sync + 'static {
    /// The server's address, and the backend as the owner of `queue` (R25).
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner);
}

/// A way to store ready and leased jobs in Redis. The [module](self) lists the parts
/// that a pattern supplies and the queue that it gets.
#[async_trait]
pub trait Pattern: Sized + Send + Sync + 'static {
    /// The configuration with which a queue of this pattern is opened.
    type Config: PatternConfig;

    /// The state that one claim keeps from one call of [`try_claim`](Self::try_claim)
    /// to the next; `()` in most patterns.
    type ClaimState: Default + Send;

    /// The name of the pattern's queue type, as `Debug` shows it.
    const QUEUE: &'static str;

    /// The options, declarations and limits of the backend.
    fn capabilities() -> &'static Capabilities;

    /// All scripts that a queue of this pattern may send, including the bookkeeping's.
    fn scripts() -> Vec<&'static Script>;

    /// Creates the pattern for one queue. Sends nothing.
    fn new(conn: Conn, queue: QueueName, config: &Self::Config) -> Self;

    /// The bookkeeping of the queue, with the keys that `pattern.lua` binds.
    fn bookkeeping(&self) -> &Bookkeeping;

    /// Stores jobs without options by the pattern's own producer command: all of them or
    /// none (R5). Returns whether they are stored. If not, the bookkeeping's push script
    /// stores them.
    ///
    /// # Errors
    /// The errors of the command. The same holds for all calls of this trait.
    async fn append(&self, ids: &[JobId], entries: Vec<Vec<u8>>)
    -> Result<bool, Error>;

    /// Leases up to `ask.max` ready jobs without waiting. `ask.max` is at most
    /// [`Limits::max_jobs_per_call`](relq_core::capabilities::Limits::max_jobs_per_call).
    ///
    /// The pattern passes the leased jobs to [`deliver`], which turns them into
    /// deliveries.
    ///
    /// # Errors
    /// The errors of the commands, as errors of the whole call: `parts` has the effect
    /// of the earlier commands, and `try_claim` adds its own.
    async fn try_claim(
        &self,
        ask: &ClaimRequest,
        state: &mut Self::ClaimState,
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error>;

    /// Builds the form of a lease that scripts take, from the lease's token and the id
    /// of its job.
    fn lease(token: &Bytes, id: &[u8]) -> Vec<u8>;

    /// Whether the end of the job with this lease token must also change records beside
    /// it: a unique key, an id to remember, or the error of an earlier failure.
    fn has_side_records(token: &Bytes) -> bool;

    /// Removes leased jobs that have ended, as many as one step handles.
    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Step, Error>;

    /// Removes finished jobs that have side records, as many as one step handles, and
    /// stores the result of each if the job keeps it (R29). A pattern whose capabilities
    /// have no results, for which this default is, does not store them.
    async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        let finish = Finish { how: Ended::Finished, needs_side_records: true };
        let receipts: Vec<_> = jobs.iter().map(|(receipt, _)| *receipt).collect();
        self.finish(finish, &receipts).await
    }

    /// Ends finished plain jobs, as many as one step handles, and tries to claim, in
    /// one script. Returns `None` if the pattern has no such script, which is the
    /// default, or if the server refused the whole script: the caller then finishes and
    /// claims by two calls.
    async fn finish_and_claim(
        &self,
        _receipts: &[&Receipt],
        _ask: &ClaimRequest,
        _parts: &mut PartialEffect,
    ) -> Option<FinishedAndClaimed<WakeConditions>> {
        None
    }

    /// Extends the leases of `held`, so that they end `lease` from now. `held` is not
    /// empty.
    async fn heartbeat(&self, held: &[Receipt], lease: Duration)
    -> Result<Beat, Error>;

    /// All leases of a worker, in the form that scripts take. The lease of the job that
    /// the worker has held longest comes first.
    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error>;

    /// Recovers up to `page` jobs whose lease has expired. The bookkeeping's part of
    /// the recovery is sent at the same time.
    async fn recover(&self, page: u32) -> Result<Recovered, Error>;

    /// Returns the blocking command that ends when a job is ready. The server holds it
    /// for at most `block`, and it does not remove a job. `None` for a pattern whose
    /// producer command notifies waiting claims itself.
    fn arrivals(&self, block: Duration) -> Option<Cmd>;

    /// Builds the command whose reply is 0 while a claim can find nothing: it counts
    /// which keys exist. It is sent in place of a claim when it is time to look again.
    /// `None`, which is the default, for a pattern whose keys do not tell.
    fn count_sources(&self) -> Option<Cmd> {
        None
    }

    /// Passes a notification on to another worker, because no claim of this client
    /// waits for it.
    async fn pass_on(&self, unheard: Notification) -> Result<(), Error>;

    /// Counts the jobs in each state (R23).
    async fn stats(&self) -> Result<Stats, Error>;

    /// Returns a page of the ready or leased jobs. The bookkeeping returns the pages of
    /// the other states.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error>;

    /// Searches once for a ready or leased job, and ends it. Call [`cancel_leased`] for
    /// leased jobs.
    async fn cancel(&self, job: &JobId) -> Result<CancelSearch, Error>;

    /// Looks for a leased job by its id, among the names of the leases (R31). `None` if
    /// no lease has the id, and always for a pattern without
    /// [`Capability::Inspect`](relq_core::capabilities::Capability::Inspect), for which
    /// this default is.
    async fn leased_job(
        &self,
        _operation: Operation,
        _job: &JobId,
    ) -> Result<Option<JobView>, Error> {
        Ok(None)
    }

    /// Removes every job of the queue. Returns how many there were.
    async fn purge(&self) -> Result<u64, Error>;

    /// Adds every ready and leased job to `seen`, and every problem with these jobs.
    /// Visits the keys in the order in which a job moves between them.
    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error>;

    /// Makes all jobs of a released worker ready again, at the front of the queue and
    /// without counting the attempt (R24). `leases` is the result of
    /// [`leases_of`](Self::leases_of).
    async fn release(&self, leases: Vec<Vec<u8>>) -> Result<Released, Error> {
        queue::give_back_all(self, leases).await
    }

    /// Refuses a server on which the pattern cannot work. [`RedisQueue`] calls it after
    /// it has connected.
    async fn check_server(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Replaces an error of opening a queue by a clearer one, if the pattern knows the
    /// cause.
    fn explain(error: Error) -> Error {
        error
    }

    /// The keys that belong to this job alone. The bookkeeping's scripts receive them
    /// after the pattern's keys. Empty if jobs are elements of shared keys.
    fn job_keys(_job: JobRef<'_>) -> Vec<String> {
        Vec::new()
    }

    /// Called when a notification has woken a waiting claim.
    fn on_notified(&self) {}

    /// Whether the end of this lease's job requires more work: for example, a batch
    /// completes with its last piece. `lease` is a token, or the form that scripts
    /// take.
    fn has_follow_up(_lease: &[u8]) -> bool {
        false
    }

    /// Does the work that becomes due when jobs end. The calls that end the jobs were
    /// sent before, but their replies may be missing. If this work fails, the next
    /// [`recover`](Self::recover) does it.
    async fn follow_up(&self, _operation: Operation) {}

    /// Does the work that [`follow_up`](Self::follow_up) has left to tasks of this client,
    /// if it has. The process may end after this call.
    async fn finish_follow_ups(&self, _operation: Operation) {}

    /// The queue as a [`BatchQueue`]; `None` unless the pattern is a [`BatchPattern`].
    fn batch_queue(_queue: &RedisQueue<Self>) -> Option<&dyn BatchQueue> {
        None
    }
}

/// The result of a claim script.
#[derive(Debug)]
pub struct Claimed {
    /// The time of the claim, by the server's clock.
    pub now: Timestamp,
    /// The leased jobs, in the order of delivery.
    pub jobs: Vec<LeasedJob>,
    /// The events that end the wait if the claim leased nothing.
    pub wake: WakeConditions,
    /// Whether scheduled jobs are due and must be promoted now.
    pub is_due: bool,
    /// Whether the claim script has changed the store.
    pub is_changed: bool,
    /// Whether an immediate second try may lease jobs if this one leased none.
    pub goes_on: bool,
}

/// A job that a claim script has leased.
#[derive(Debug)]
pub struct LeasedJob {
    /// The token of the job's lease.
    pub token: Bytes,
    /// The job's entry: its id, options and payload.
    pub entry: Bytes,
    /// Where the number of this delivery is stored.
    pub attempt: Attempt,
}

/// Where a pattern stores the number of the running delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The entry already counts the running delivery.
    InEntry,
    /// The entry counts only the earlier deliveries, so the number is one more.
    AfterEntry,
    /// The pattern counts deliveries outside the entry; this is the number.
    Number(u16),
}

/// The events that end the wait of a claim that found nothing, in addition to a signal
/// of the bookkeeping and the claim's own deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeConditions {
    /// How long until the next job is due, or until the next lease ends; `None` if
    /// there is neither.
    pub next_in: Option<Duration>,
    /// Whether the arrival of a ready job ends the wait.
    pub on_arrival: bool,
    /// Whether the queue is paused. A claim that waits through a pause is woken by the
    /// signal of the resume, and passes it on to the next waiting claim.
    pub is_paused: bool,
}

impl From<WaitHint> for WakeConditions {
    /// The events that end the wait. While the queue is paused, only a signal does.
    fn from(WaitHint { is_paused, due_in }: WaitHint) -> Self {
        let next_in = due_in.filter(|_| !is_paused);
        Self { next_in, on_arrival: !is_paused, is_paused }
    }
}

/// How a waiting claim is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// The pattern's own command returned: a client has made a job ready.
    Arrival,
    /// A script has put a token into the bookkeeping's list `wake`.
    Signal,
}

/// A job that a script of the bookkeeping handles, so that the script needs the keys of
/// this job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobRef<'a> {
    /// The job with this id, which the script stores.
    Pushed(&'a JobId),
    /// The job that is held by this lease, and that the script retries, buries or
    /// cancels.
    Leased(&'a [u8]),
    /// The job that is held by this lease, and that the script makes ready again.
    GivenBack(&'a [u8]),
}
