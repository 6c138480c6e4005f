//! The requests to the store, and its answers.

use relq::{
    JobId, QueueName, Stats, WorkerId,
    environment::Timestamp,
    operator::{
        DeadGroup, JobRecord, JobState, JobView, PageCursor, StateDetail, WorkerView,
    },
};

use super::changes::Change;

/// An action that an event leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Read the counts of all queues.
    Sample(NamesOf),
    /// Read the open page. An earlier reading that still runs is dropped.
    Read(Read),
    Change(QueueName, Change),
    /// Draw every cell again.
    Redraw,
    Quit,
}

/// Where the names of the queues come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NamesOf {
    /// A list that may be some seconds old.
    LastList,
    NewList,
}

/// The reading of a page, with a number by which its answer is recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) number: u64,
    pub(super) queue: QueueName,
    pub(super) page: PageOf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageOf {
    Jobs(Position, Filter),
    /// The dead jobs by their errors.
    Errors,
    Workers,
    /// One job, which was seen at this position.
    Job(JobId, Position),
}

/// A position in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) state: JobState,
    pub(super) after: Option<PageCursor>,
}

/// Which jobs a listing shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Filter {
    /// A text in the id, the payload, the headers or the errors.
    pub(super) text: String,
    pub(super) only: Only,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Only {
    #[default]
    All,
    /// The jobs that this worker holds.
    Worker(WorkerId),
    /// The jobs of a group of dead ones.
    Group(Group),
}

impl Filter {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the filter lets a job through.
    pub(super) fn fits(&self, job: &JobView) -> bool {
        let of_only = match &self.only {
            Only::All => true,
            Only::Worker(wanted) => {
                matches!(&job.detail, StateDetail::Leased { worker, .. } if worker == wanted)
            }
            Only::Group(group) => {
                job.id.as_ref().is_some_and(|id| group.jobs.contains(id))
            }
        };
        of_only && (self.text.is_empty() || self.has_text(job))
    }

    fn has_text(&self, job: &JobView) -> bool {
        let in_id = job.id.as_ref().is_some_and(|id| id.as_str().contains(&self.text));
        let wanted = relq::operator::Wanted::default().text(self.text.clone());
        in_id || wanted.fits(job)
    }
}

/// An answer of the store, or why there is none.
#[derive(Debug)]
pub(super) enum Answer {
    Sampled(Result<Sample, String>),
    Read { number: u64, found: Result<Found, String> },
    Changed(Result<String, String>),
}

/// The counts of the queues.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// How many queues the store has.
    pub(super) all: usize,
    pub(super) queues: Vec<(QueueName, Counts)>,
}

/// The backend of a queue and its counts, or why they cannot be read.
pub(super) type Counts = Result<(&'static str, Stats), String>;

/// The content of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Jobs(JobsPage),
    Errors(Vec<Group>, Completeness),
    Workers(Vec<WorkerRow>, Completeness),
    Job(Box<JobRecord>),
    /// The job is not stored any more, as this sentence says.
    NoJob(String),
}

/// Whether a list has everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Completeness {
    #[default]
    Whole,
    Cut,
}

/// One page of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct JobsPage {
    pub(super) jobs: Vec<JobView>,
    /// How many jobs were looked at to find them.
    pub(super) looked_at: usize,
    pub(super) next: Option<PageCursor>,
}

/// Dead jobs with the same error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// The error, with `#` for numbers and ids.
    pub(super) error: String,
    pub(super) jobs: Vec<JobId>,
    /// When the first of the jobs was buried.
    pub(super) first: Timestamp,
    /// When the last of the jobs was buried.
    pub(super) last: Timestamp,
}

impl From<DeadGroup> for Group {
    fn from(group: DeadGroup) -> Self {
        let DeadGroup { error, jobs, first, last, .. } = group;
        Self { error, jobs, first, last }
    }
}

/// A worker with the jobs that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerRow {
    pub(super) worker: WorkerId,
    /// Its report; `None` if it has not reported.
    pub(super) report: Option<WorkerView>,
    /// The jobs that it holds, with the times of their claims.
    pub(super) held: Vec<(Option<JobId>, Timestamp)>,
}
