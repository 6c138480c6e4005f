//! What a pattern supplies, and what it gets.
//!
//! A backend on Redis is a *pattern*: a way to keep ready and leased jobs in Redis. The
//! rest is the same in all of them and stands in [`RedisQueue`].
//!
//! ```text
//!  ReliableQueue, Operator        what workers and operators call
//!         |
//!   RedisQueue<P>                 the order of steps, batches of calls, errors of many
//!         |                       commands as one (R21), waiting, recovery of the bookkeeping
//!     P: Pattern                  where ready and leased jobs are
//!         |
//!     Bookkeeping                 scheduled and dead jobs, unique keys, ids, tokens
//!         |
//!     Conn                        a connection that heals
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
//! A lease has two forms. A receipt carries its *token*, and no two leases share one (R7).
//! Scripts take the *lease*, which [`Pattern::lease`] makes of the token and the job's id.
//!
//! # What a pattern gets
//!
//! With `pub type MyQueue = RedisQueue<MyPattern>` it has:
//!
//! * `MyQueue::connect(config, queue)`, which refuses the queue of another backend (R25)
//!   and loads the scripts;
//! * all of [`ReliableQueue`](relq_core::ReliableQueue) and
//!   [`Operator`](relq_core::Operator): limits are checked before anything is sent, calls
//!   that belong together share a round trip, and a call of which one command was done and
//!   another refused says so;
//! * claims that promote what is due, bury what cannot be delivered, and wait: woken by a
//!   notification, at the next due time, and at the latest after
//!   [`Capabilities::lateness`](relq_core::capabilities::Capabilities::lateness).
//!
//! # What a pattern must keep
//!
//! A future may be dropped at every `await` (R22). So each step that moves a job is one
//! script or one command, and what a pattern remembers in memory between two steps is only
//! a hint. The suite `relq-conformance` judges a pattern as it judges any other backend.

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
    operator::{JobState, Page, PeekRequest},
    outcome::{Recovered, Released},
};

use crate::{
    Conn, Owner, PartialEffect, RedisConfig, RedisQueue, Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, WaitHint},
    queue,
};

pub use crate::queue::{BatchPattern, cancel_leased, deliver};

/// What a queue of a pattern is opened with.
pub trait PatternConfig: Clone + Send + Sync + 'static {
    /// Where the server is, and the backend as the owner of that queue (R25).
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner);
}

/// A way to keep ready and leased jobs in Redis. The [module](self) says what a pattern
/// supplies and what it gets.
#[async_trait]
pub trait Pattern: Sized + Send + Sync + 'static {
    /// What its queues are opened with.
    type Config: PatternConfig;

    /// What one claim remembers from one try to the next; `()` in most patterns.
    type ClaimState: Default + Send;

    /// The name of the queue's type, as `Debug` shows it.
    const QUEUE: &'static str;

    /// What the backend supports and declares.
    fn capabilities() -> &'static Capabilities;

    /// All scripts that its queues may send, the bookkeeping's included.
    fn scripts() -> Vec<&'static Script>;

    /// The pattern on one queue. Nothing is sent yet.
    fn new(conn: Conn, queue: QueueName, config: &Self::Config) -> Self;

    /// The bookkeeping of the queue, with the keys that `pattern.lua` binds.
    fn bookkeeping(&self) -> &Bookkeeping;

    /// Stores plain jobs by the pattern's own producer command, all or none (R5), and
    /// answers whether they are stored. If not, the bookkeeping's push script stores them.
    ///
    /// # Errors
    /// Those of the command; so with all calls here.
    async fn append(&self, ids: &[JobId], entries: Vec<Vec<u8>>)
    -> Result<bool, Error>;

    /// Leases up to `ask.max` ready jobs without waiting. `ask.max` is at most
    /// [`Limits::max_jobs_per_call`](relq_core::capabilities::Limits::max_jobs_per_call).
    ///
    /// The pattern hands what it leased to [`deliver`], which makes deliveries of it.
    ///
    /// # Errors
    /// Those of the commands, for all of `parts`, to which it adds what it changes.
    async fn try_claim(
        &self,
        ask: &ClaimRequest,
        state: &mut Self::ClaimState,
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error>;

    /// The lease as scripts take it, by its token and the id of its job.
    fn lease(token: &Bytes, id: &[u8]) -> Vec<u8>;

    /// Whether ending the job of that token touches more than the job itself: a unique
    /// key, an id to remember, an earlier failure.
    fn has_side_records(token: &Bytes) -> bool;

    /// Ends jobs, and answers the positions of the lost leases.
    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Vec<usize>, Error>;

    /// Lets leases run for `lease` from now. There is at least one.
    async fn heartbeat(&self, held: &[Receipt], lease: Duration)
    -> Result<Beat, Error>;

    /// All leases of a worker, as scripts take them, the one held longest first.
    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error>;

    /// Recovers up to `page` jobs whose lease has ended. The bookkeeping's part of a recovery
    /// is sent beside it.
    async fn recover(&self, page: u32) -> Result<Recovered, Error>;

    /// The command that answers once a ready job is there, blocks for `block` at most, and
    /// takes no job from anybody; `None` in a pattern whose producer command notifies
    /// waiting claims itself.
    fn arrivals(&self, block: Duration) -> Option<Cmd>;

    /// Makes another worker hear a notification that found no waiting claim here.
    async fn pass_on(&self, unheard: Notification) -> Result<(), Error>;

    /// The figures (R23).
    async fn stats(&self) -> Result<Stats, Error>;

    /// A page of the jobs that are ready or leased. The others are on the bookkeeping.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error>;

    /// Ends a job that is ready or leased, and answers which of the two it was; `None`
    /// when it was not found. Leased jobs are ended by
    /// [`cancel_leased`].
    async fn cancel(&self, job: &JobId) -> Result<Option<JobState>, Error>;

    /// Removes every job of the queue, and answers how many there were.
    async fn purge(&self) -> Result<u64, Error>;

    /// Notes in `seen` every ready and leased job, and what is wrong with them. The order
    /// is that in which a job moves.
    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error>;

    /// Gives back all that a leaving worker holds, uncounted and to the front (R24).
    /// `leases` are those of [`leases_of`](Self::leases_of).
    async fn release(&self, leases: Vec<Vec<u8>>) -> Result<Released, Error> {
        queue::give_back_all(self, &leases).await
    }

    /// Refuses a server on which the pattern cannot work. Called once the scripts are
    /// loaded.
    async fn check_server(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Rewords an error of opening a queue, where the pattern knows its cause better.
    fn explain(error: Error) -> Error {
        error
    }

    /// The keys of that job alone which a script of the bookkeeping has to be told, behind the
    /// keys of the pattern; none where jobs are elements of shared keys.
    fn job_keys(_job: JobRef<'_>) -> Vec<String> {
        Vec::new()
    }

    /// A notification woke a waiting claim.
    fn on_notified(&self) {}

    /// Whether something follows the end of the job of that lease, as a batch completes
    /// with its last piece. `lease` is a token, or a lease as scripts take it.
    fn has_follow_up(_lease: &[u8]) -> bool {
        false
    }

    /// Carries out what follows the end of jobs, after the calls that end them were sent.
    /// What fails here is left to [`recover`](Self::recover).
    async fn follow_up(&self, _operation: Operation) {}

    /// The queue with its batches, in a pattern that is a
    /// [`BatchPattern`].
    fn batch_queue(_queue: &RedisQueue<Self>) -> Option<&dyn BatchQueue> {
        None
    }
}

/// What a claim script leased.
#[derive(Debug)]
pub struct Claimed {
    /// The time of the claim, by the server's clock.
    pub now: Timestamp,
    /// What was leased, in the order of delivery.
    pub jobs: Vec<LeasedJob>,
    /// What ends the wait of a claim that gets nothing.
    pub wake: WakeConditions,
    /// Whether there are scheduled jobs to be promoted now.
    pub is_due: bool,
    /// Whether the call has changed something.
    pub is_changed: bool,
    /// Whether, without deliveries, another try may find some at once.
    pub goes_on: bool,
}

/// A job as a claim script leased it.
#[derive(Debug)]
pub struct LeasedJob {
    /// The token of its lease.
    pub token: Bytes,
    /// Its entry.
    pub entry: Bytes,
    /// Which delivery of the job this is.
    pub attempt: Attempt,
}

/// How a pattern counts the delivery under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The entry counts it already.
    InEntry,
    /// The entry counts those before it.
    AfterEntry,
    /// The pattern counts by itself: it is this one.
    Number(u16),
}

/// What ends the wait of a claim that found nothing, beside a signal of the bookkeeping and the
/// claim's own deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WakeConditions {
    /// When something is due or ends next.
    pub next_in: Option<Duration>,
    /// Whether an arrival is a reason to try again.
    pub on_arrival: bool,
}

impl From<WaitHint> for WakeConditions {
    /// While the queue is paused, nothing but a signal is a reason to try again.
    fn from(WaitHint { is_paused, due_in }: WaitHint) -> Self {
        Self { next_in: due_in.filter(|_| !is_paused), on_arrival: !is_paused }
    }
}

/// How a waiting claim is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notification {
    /// By the pattern's own command: any client has made a job ready.
    Arrival,
    /// By a token in the bookkeeping's list `wake`, which scripts leave there.
    Signal,
}

/// A job that a script of the bookkeeping is told of, by what the script does with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobRef<'a> {
    /// It is stored.
    Pushed(&'a JobId),
    /// It is held by that lease, and fails, is buried or is cancelled.
    Leased(&'a [u8]),
    /// It is held by that lease, and becomes ready again.
    GivenBack(&'a [u8]),
}
