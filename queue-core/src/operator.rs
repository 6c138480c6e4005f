//! The operator's side of a queue: look, steer, repair.

use std::{
    fmt::Debug,
    num::{NonZeroU16, NonZeroU32},
};

use async_trait::async_trait;
use bytes::Bytes;

use crate::{
    BatchId, Error, Headers, JobId, Priority, ReliableQueue, Stats, Timestamp,
    UniqueKey, WorkerId,
};

/// What an operator does with a queue. Workers do not need it.
#[async_trait]
pub trait Operator: Debug + Send + Sync {
    /// How many jobs are where (R23).
    async fn stats(&self) -> Result<Stats, Error>;

    /// One page of the jobs in a state, next to be served first.
    ///
    /// Pages are read one by one, so jobs that move between two calls may be
    /// missing or shown twice.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error>;

    /// Makes dead jobs ready again, at the back of the queue and with no attempt
    /// counted. One whose unique key is held by then stays dead (R16).
    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error>;

    /// Removes dead jobs and answers how many.
    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error>;

    /// Removes every job in every state, every batch, and all that the queue remembers;
    /// answers how many jobs. Workers that hold one find their lease lost.
    async fn purge(&self) -> Result<u64, Error>;

    /// Ends a scheduled, ready or leased job for good. The worker that holds a
    /// leased one learns it at its next heartbeat.
    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error>;

    /// Stops claims until `resume`; what is leased goes on. Pausing a paused queue
    /// changes nothing.
    async fn pause(&self) -> Result<(), Error>;

    /// Lets claims go on. Resuming a running queue changes nothing.
    async fn resume(&self) -> Result<(), Error>;

    /// Proves that each job is in exactly one place, or says where not (R23). Reads
    /// everything: a tool for tests and repairs, not for a dashboard.
    async fn audit(&self) -> Result<Audit, Error>;
}

/// Both sides of a queue in one object, as the facade hands it out.
pub trait Queue: ReliableQueue + Operator {}

impl<T: ReliableQueue + Operator> Queue for T {}

/// The states in which a job is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Waiting for its time.
    Scheduled,
    /// Waiting to be claimed.
    Ready,
    /// In the hands of a worker.
    Leased,
    /// Buried.
    Dead,
}

impl JobState {
    /// The state in one word: `scheduled`, `ready`, `leased` or `dead`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduled => "scheduled",
            Self::Ready => "ready",
            Self::Leased => "leased",
            Self::Dead => "dead",
        }
    }
}

/// Which dead jobs are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All that are dead when the call begins.
    All,
    /// Those of these ids; unknown ids are passed over.
    Only(Vec<JobId>),
}

/// Where the next page begins, in the backend's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(pub Bytes);

/// Asks for one page of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekRequest {
    /// In which state.
    pub state: JobState,
    /// How many at most. A backend may give fewer with more to come.
    pub limit: NonZeroU32,
    /// Where to go on; `None` begins.
    pub after: Option<PageCursor>,
}

impl PeekRequest {
    /// The first page of up to `limit` jobs in `state`.
    pub fn new(state: JobState, limit: NonZeroU32) -> Self {
        Self { state, limit, after: None }
    }

    /// Goes on where the last page ended.
    #[must_use]
    pub fn after(mut self, cursor: PageCursor) -> Self {
        self.after = Some(cursor);
        self
    }
}

/// One page of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The jobs.
    pub jobs: Vec<JobView>,
    /// Where the next page begins; `None` when this was the last.
    pub next: Option<PageCursor>,
}

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// Its id. A bare payload has none until it is leased (R20).
    pub id: Option<JobId>,
    /// What was pushed.
    pub payload: Bytes,
    /// Deliveries so far, the running one among them.
    pub attempt: u32,
    /// Deliveries before it is buried.
    pub max_attempts: NonZeroU16,
    /// How soon it is wanted.
    pub priority: Priority,
    /// The key that it holds.
    pub unique: Option<UniqueKey>,
    /// When it is buried if it was not delivered by then.
    pub expires_at: Option<Timestamp>,
    /// What travels with it.
    pub headers: Headers,
    /// What its last failed attempt said.
    pub last_error: Option<String>,
    /// The batch that it is a piece of; of a dead letter, the batch in which it died,
    /// as long as that can be read.
    pub batch: Option<BatchId>,
    /// What is known of the state it is in.
    pub detail: StateDetail,
}

impl JobView {
    /// A view of a job of which only this is known.
    pub fn new(
        id: Option<JobId>,
        payload: impl Into<Bytes>,
        detail: StateDetail,
    ) -> Self {
        Self {
            id,
            payload: payload.into(),
            attempt: 0,
            max_attempts: crate::DEFAULT_MAX_ATTEMPTS,
            priority: Priority::NORMAL,
            unique: None,
            expires_at: None,
            headers: Headers::default(),
            last_error: None,
            batch: None,
            detail,
        }
    }
}

/// What is known of the state that a job is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDetail {
    /// It becomes ready then.
    Scheduled {
        /// When it is due.
        due: Timestamp,
    },
    /// It can be claimed.
    Ready,
    /// A worker holds it.
    Leased {
        /// Who holds it.
        worker: WorkerId,
        /// Since when.
        since: Timestamp,
        /// Until when, unless extended.
        until: Timestamp,
    },
    /// It was buried.
    Dead {
        /// Why, in words: what the disposition said, or what relq found.
        reason: String,
        /// Since when.
        since: Timestamp,
    },
}

impl StateDetail {
    /// The state that this tells of.
    pub fn state(&self) -> JobState {
        match self {
            Self::Scheduled { .. } => JobState::Scheduled,
            Self::Ready => JobState::Ready,
            Self::Leased { .. } => JobState::Leased,
            Self::Dead { .. } => JobState::Dead,
        }
    }
}

/// What became of dead jobs that were to be made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redriven {
    /// Ready again.
    pub moved: u64,
    /// Still dead, because another job holds their unique key.
    pub duplicates: u64,
}

/// What became of a job that was to be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It is gone; it was in this state.
    Removed(JobState),
    /// No scheduled, ready or leased job has this id.
    NotFound,
}

/// What an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// Jobs looked at.
    pub jobs: u64,
    /// What is wrong, a sentence each. Empty when all is well.
    pub problems: Vec<String>,
}
