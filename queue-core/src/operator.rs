//! Parameters and results of an [`Operator`](crate::Operator)'s calls.

use std::num::{NonZeroU16, NonZeroU32};

use bytes::Bytes;

use crate::{
    Headers, JobId, Priority, WorkerId, batch::BatchId, environment::Timestamp,
    unique::UniqueKey,
};

/// The states of a stored job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Waiting until it is due.
    Scheduled,
    /// Waiting to be claimed.
    Ready,
    /// Held by a worker.
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

/// Selects dead jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All jobs that are dead when the call begins.
    All,
    /// The dead jobs with these ids; unknown ids are skipped.
    Only(Vec<JobId>),
}

/// Where the next page begins, in the backend's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(pub Bytes);

/// Asks for one page of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekRequest {
    /// The state of the jobs.
    pub state: JobState,
    /// The most jobs of the page. A backend may return fewer although more pages
    /// follow.
    pub limit: NonZeroU32,
    /// Where the page begins; `None` is the first page.
    pub after: Option<PageCursor>,
}

impl PeekRequest {
    /// The first page of up to `limit` jobs in `state`.
    pub fn new(state: JobState, limit: NonZeroU32) -> Self {
        Self { state, limit, after: None }
    }

    /// Continues where the last page ended.
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
    /// Where the next page begins; `None` when this is the last page.
    pub next: Option<PageCursor>,
}

/// A job as an operator sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// The job's id. A bare payload has none until it is leased (R20).
    pub id: Option<JobId>,
    /// The pushed payload.
    pub payload: Bytes,
    /// Deliveries so far, including the running one.
    pub attempt: u32,
    /// Deliveries before the job is buried.
    pub max_attempts: NonZeroU16,
    /// The job's priority.
    pub priority: Priority,
    /// The unique key that the job holds.
    pub unique: Option<UniqueKey>,
    /// When the job is buried if it is still not delivered.
    pub expires_at: Option<Timestamp>,
    /// The job's headers.
    pub headers: Headers,
    /// The error of the job's last failed attempt.
    pub last_error: Option<String>,
    /// The batch of the job, if the job is a piece. For a dead letter: the batch in
    /// which it died, as long as the record of that batch exists.
    pub batch: Option<BatchId>,
    /// Details of the job's state.
    pub detail: StateDetail,
}

impl JobView {
    /// A view of a job with only these fields set.
    pub fn new(
        id: Option<JobId>,
        payload: impl Into<Bytes>,
        detail: StateDetail,
    ) -> Self {
        Self {
            id,
            payload: payload.into(),
            attempt: 0,
            max_attempts: crate::limits::DEFAULT_MAX_ATTEMPTS,
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

/// Details of the state of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDetail {
    /// The job becomes ready at a set time.
    Scheduled {
        /// When the job is due.
        due: Timestamp,
    },
    /// The job can be claimed.
    Ready,
    /// A worker holds the job.
    Leased {
        /// The worker that holds the job.
        worker: WorkerId,
        /// When this state began.
        since: Timestamp,
        /// When the lease expires, unless it is extended.
        until: Timestamp,
    },
    /// The job was buried.
    Dead {
        /// The reason, as text: from the disposition, or from relq itself.
        reason: String,
        /// When this state began.
        since: Timestamp,
    },
}

impl StateDetail {
    /// The state that these details belong to.
    pub fn state(&self) -> JobState {
        match self {
            Self::Scheduled { .. } => JobState::Scheduled,
            Self::Ready => JobState::Ready,
            Self::Leased { .. } => JobState::Leased,
            Self::Dead { .. } => JobState::Dead,
        }
    }
}

/// The result of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redriven {
    /// Jobs that are ready again.
    pub moved: u64,
    /// Jobs that are still dead, because another job holds their unique key.
    pub duplicates: u64,
}

/// The result of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job was removed; it was in this state.
    Removed(JobState),
    /// No scheduled, ready or leased job has this id.
    NotFound,
}

/// The result of an audit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// The number of jobs checked.
    pub jobs: u64,
    /// The problems found, one sentence each. Empty when there are none.
    pub problems: Vec<String>,
}
