//! The parameters and results of the calls of an [`Operator`](crate::Operator), and the
//! calls that find jobs and workers.

mod find;
mod groups;
mod history;
mod inspect;
#[cfg(test)]
pub(crate) mod listed;
mod restore;
mod search;
mod workers;

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use bytes::Bytes;

pub use find::find_job;
pub use groups::{DeadGroup, DeadGroups};
pub use history::{Flow, Rates, Span, StatsHistory};
pub use inspect::{InspectQueue, JobLookup, JobRecord, RunNow};
pub use restore::RestoreQueue;
pub use search::{JobSearch, Places, SearchPage, Wanted};
pub use workers::{
    HeldByWorker, REPORT_INTERVAL, WORKER_FORGOTTEN_AFTER, WorkerReport, WorkerView,
    WorkersPage, held_by_worker,
};

use crate::{
    Headers, JobId, Priority, WorkerId, batch::BatchId, environment::Timestamp,
    unique::UniqueKey,
};

/// The states of a stored job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// The job waits until a set time, when it becomes ready, or until the job that it
    /// follows is done (R30).
    Scheduled,
    /// The job waits until a worker claims it.
    Ready,
    /// A worker holds the job.
    Leased,
    /// The job was buried: it is kept until it is redriven or purged.
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

/// The dead jobs that a redrive or a purge handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All jobs that are dead when the call begins.
    All,
    /// The dead jobs with these ids; unknown ids are skipped.
    Only(Vec<JobId>),
}

/// The position at which the next page of jobs begins, in the backend's own form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageCursor(pub Bytes);

/// A request for one page of jobs of one state.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeekRequest {
    /// The state of the jobs to return.
    pub state: JobState,
    /// The largest number of jobs to return. A backend may return fewer although more
    /// pages follow.
    pub limit: NonZeroU32,
    /// The position where the page begins; `None` for the first page. A listing keeps
    /// one order and one choice of parts on all of its pages.
    pub after: Option<PageCursor>,
    /// The order of the jobs.
    pub order: PeekOrder,
    /// The parts of each job that the caller needs.
    pub parts: JobParts,
}

impl PeekRequest {
    /// Creates a request for the first page, with up to `limit` jobs in `state`, whole
    /// and in the order in which they will be served.
    pub fn new(state: JobState, limit: NonZeroU32) -> Self {
        let (order, parts) = (PeekOrder::default(), JobParts::default());
        Self { state, limit, after: None, order, parts }
    }

    /// Begins the page at `cursor`, which an earlier page returned.
    #[must_use]
    pub fn after(mut self, cursor: PageCursor) -> Self {
        self.after = Some(cursor);
        self
    }

    /// Lists the jobs from the one that would be served last to the first. It needs
    /// [`Capability::Inspect`](crate::capabilities::Capability::Inspect).
    #[must_use]
    pub fn newest_first(mut self) -> Self {
        self.order = PeekOrder::NewestFirst;
        self
    }

    /// Asks only for the id, the state and the last error of each job.
    #[must_use]
    pub fn outline(mut self) -> Self {
        self.parts = JobParts::Outline;
        self
    }
}

/// The order in which a page lists its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PeekOrder {
    /// In the order in which the jobs will be served.
    #[default]
    AsServed,
    /// From the job that would be served last to the first.
    NewestFirst,
}

/// The parts of a job that a page must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum JobParts {
    /// All parts.
    #[default]
    Whole,
    /// The id, the state with its details, and the last error. The backend may leave out
    /// the payload, and then all other fields have their defaults.
    Outline,
}

/// One page of jobs, as [`Operator::peek`](crate::Operator::peek) returns it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The jobs of this page, in the order of the request.
    pub jobs: Vec<JobView>,
    /// The position where the next page begins; `None` when this is the last page.
    pub next: Option<PageCursor>,
}

/// The data of a job that an operator can see.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// The job's id. A bare payload has no id until it is leased (R20), unless its key in
    /// the store names one, as on keyspace.
    pub id: Option<JobId>,
    /// The pushed payload.
    pub payload: Bytes,
    /// How many times the job has been delivered, including the delivery that now runs.
    pub attempt: u32,
    /// How many times the job may be delivered before it is buried.
    pub max_attempts: NonZeroU16,
    /// The job's priority among the ready jobs (R15).
    pub priority: Priority,
    /// The unique key that the job holds, if it holds one.
    pub unique: Option<UniqueKey>,
    /// When the job is buried if it is still not delivered; `None` for a job that does
    /// not expire.
    pub expires_at: Option<Timestamp>,
    /// When the job was pushed, by the store's clock (R27). `None` if the producer does
    /// not record this time, as other clients and early versions of relq do not.
    pub enqueued_at: Option<Timestamp>,
    /// The job's headers, as the producer set them.
    pub headers: Headers,
    /// The error of the job's last failed attempt; `None` if no attempt failed.
    pub last_error: Option<String>,
    /// The batch of which the job is a piece. A dead letter keeps the batch in which it
    /// died, as long as the record of that batch exists.
    pub batch: Option<BatchId>,
    /// The job's own length of its leases; `None` if each claim chooses it.
    pub lease: Option<Duration>,
    /// How long the job's result is kept after its end (R29); `None` if none is kept.
    pub keep_result: Option<Duration>,
    /// Why no worker can run the job: another client has pushed or damaged an entry that
    /// cannot be read (R3), and this is the reason of its dead letter. The other fields hold
    /// what can be read, and the payload holds the bytes. `None` if the job can be read.
    pub unreadable: Option<String>,
    /// The state of the job, with the details of that state.
    pub detail: StateDetail,
}

impl JobView {
    /// Creates a view of a job with the given fields. A backend sets the other fields.
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
            enqueued_at: None,
            headers: Headers::default(),
            last_error: None,
            batch: None,
            lease: None,
            keep_result: None,
            unreadable: None,
            detail,
        }
    }

    /// Returns the total size of the payload, the headers and the errors, in bytes.
    pub fn total_bytes(&self) -> usize {
        let reason = match &self.detail {
            StateDetail::Dead { reason, .. } => reason.len(),
            _ => 0,
        };
        let last_error = self.last_error.as_ref().map_or(0, String::len);
        self.payload.len() + self.headers.total_bytes() + last_error + reason
    }
}

/// The state of a job, with the details of that state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDetail {
    /// The job becomes ready at a set time.
    Scheduled {
        /// When the job is due.
        due: Timestamp,
    },
    /// The job becomes ready, or its delay begins, when another job is done (R30). Its
    /// state is [`JobState::Scheduled`].
    Following {
        /// The job that it follows.
        leader: JobId,
        /// The delay that begins when the leader is done.
        delay: Duration,
    },
    /// The job can be claimed.
    Ready,
    /// A worker holds the job.
    Leased {
        /// The worker that holds the job.
        worker: WorkerId,
        /// When the worker claimed the job.
        since: Timestamp,
        /// When the lease expires, unless it is extended.
        until: Timestamp,
    },
    /// The job was buried.
    Dead {
        /// Why the job was buried, as text.
        reason: String,
        /// When the job was buried.
        since: Timestamp,
    },
}

impl StateDetail {
    /// Returns the state to which these details belong.
    pub fn state(&self) -> JobState {
        match self {
            Self::Scheduled { .. } | Self::Following { .. } => JobState::Scheduled,
            Self::Ready => JobState::Ready,
            Self::Leased { .. } => JobState::Leased,
            Self::Dead { .. } => JobState::Dead,
        }
    }
}

/// The result of a redrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Redriven {
    /// The number of dead jobs that the redrive made ready again.
    pub moved: u64,
    /// The number of jobs that are still dead, because another job holds their unique
    /// key.
    pub duplicates: u64,
}

/// The result of cancelling a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The job was removed. It was in the given state.
    Removed(JobState),
    /// No scheduled, ready or leased job has this id.
    NotFound,
}

/// The result of an audit, which checks the stored jobs of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Audit {
    /// The number of jobs that the audit checked.
    pub jobs: u64,
    /// The problems that the audit found, one sentence each; empty when there are none.
    pub problems: Vec<String>,
}
