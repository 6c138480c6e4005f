//! One operation of a sequence.

mod parse;
mod text;

use std::time::Duration;

use relq_core::operator::JobState;

use super::draft;

/// One operation, by one actor, with at most one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) who: Who,
    pub(crate) act: Act,
    pub(crate) fault: Option<InjectedFault>,
}

/// The actor that makes an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Producer,
    WorkerA,
    WorkerB,
    Operator,
    Reaper,
    /// No actor: time passes, or late commands arrive.
    Nobody,
}

/// The call that an operation makes. Numbers are indexes into the tables of
/// [`super::draft`], or count back from the newest receipt or job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    Push {
        jobs: Vec<Draft>,
        token: u8,
    },
    Repeat {
        token: u8,
    },
    Claim {
        max: u8,
        lease: u8,
        wait: u8,
    },
    Settle(Vec<DraftSettlement>),
    SettleAndClaim {
        words: Vec<DraftSettlement>,
        max: u8,
        lease: u8,
    },
    Extend {
        receipts: Vec<u8>,
        lease: u8,
    },
    ReleaseWorker,
    Recover {
        page: u8,
    },
    Advance(u8),
    AdvanceBy(Duration),
    Cancel {
        job: u8,
    },
    CancelUnknown,
    Pause,
    Resume,
    Redrive,
    RedriveOne {
        job: u8,
    },
    PurgeDead,
    Purge,
    CreateBatch {
        batch: u8,
        options: BatchDraft,
    },
    Add {
        batch: u8,
        jobs: Vec<Draft>,
        token: u8,
    },
    Batch {
        batch: u8,
        word: BatchWord,
    },
    /// Reports progress of the job of a receipt.
    Report {
        receipt: u8,
        value: u8,
    },
    /// Reads what became of a job.
    Result {
        job: u8,
    },
    /// Restores jobs.
    Restore {
        jobs: Vec<RestoreDraft>,
    },
    /// Lists the jobs of a state.
    Peek(JobState),
    /// Lists the jobs of a state, newest first.
    Newest(JobState),
    /// Runs a scheduled job now.
    RunNow {
        job: u8,
    },
    /// Looks for a job by its id.
    Show {
        job: u8,
    },
    /// Reports that a worker runs.
    ReportWorker,
    /// Lists the workers that have reported.
    Workers,
    /// Reads the stats.
    Stats,
    /// Reads the audit.
    Audit,
    /// Lists the batches.
    ListBatches,
    PutSchedule {
        schedule: u8,
        definition: u8,
    },
    RemoveSchedule {
        schedule: u8,
    },
    Tick {
        schedule: u8,
        definition: u8,
        at: TickTime,
        job: Draft,
    },
    /// Lists the schedules.
    ListSchedules,
    Release,
}

/// The moment of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickTime {
    /// This number of seconds after the beginning of the scene.
    Since(u8),
    /// This number of seconds after the last whole second before the call. It may be
    /// negative.
    Now(i8),
}

/// One number for each option of a job, in the order of [`Draft::LETTERS`]. Zero stands
/// for the option's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Draft(pub(crate) [u8; Draft::LETTERS.len()]);

/// A job to restore: its state, how often it was delivered, and its options. The delay is
/// how long a scheduled job still waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RestoreDraft {
    pub(crate) state: RestoredAs,
    pub(crate) attempt: u8,
    pub(crate) job: Draft,
}

/// The state in which a job is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestoredAs {
    Ready,
    Scheduled,
    Dead,
}

/// The options of a batch. `slots` is its limit, and 0 slots mean no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchDraft {
    pub(crate) priority: u8,
    pub(crate) slots: u8,
    /// Whether its completion job goes to another queue.
    pub(crate) is_told_elsewhere: bool,
}

/// A call that changes or reads a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchWord {
    Read,
    /// Reads the batch as a call that waits for its end, without a wait.
    Wait,
    Seal,
    Cancel,
    Alter(BatchDraft),
}

/// A settlement: a disposition, and which of the actor's receipts it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DraftSettlement {
    pub(crate) receipt: u8,
    pub(crate) disposition: DispositionKind,
}

/// A disposition without its error text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispositionKind {
    Done,
    /// Done with the result of that number.
    DoneWith(u8),
    Discard,
    Bury,
    GiveBack,
    Retry(u8),
    Postpone(u8),
}

/// A fault at one step of the operation. Steps are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    pub(crate) how: How,
    pub(crate) step: u8,
}

/// The kind of a fault. The documentation of the module `spec` describes each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Before,
    After,
    Ghost,
    CutBefore,
    CutAfter,
    Loading,
    OutOfMemory,
}

impl Operation {
    /// The time that passes, if nothing else happens.
    pub(crate) fn time(&self) -> Option<Duration> {
        match self.act {
            Act::Advance(step) => Some(draft::step(step)),
            Act::AdvanceBy(time) => Some(time),
            _ => None,
        }
    }

    /// How many payloads the operation uses up. No two jobs of a sequence have the same
    /// payload.
    fn payloads(&self) -> usize {
        match &self.act {
            Act::Push { jobs, .. } | Act::Add { jobs, .. } => jobs.len(),
            Act::Restore { jobs } => jobs.len(),
            // The completion of the batch pushes a job.
            Act::CreateBatch { .. } | Act::Tick { .. } => 1,
            _ => 0,
        }
    }
}

/// Returns, for each operation, how many payloads are used up before it, and adds those
/// of all operations to `used`.
pub(crate) fn payloads_before(
    operations: &[Operation],
    used: &mut usize,
) -> Vec<usize> {
    let counts = operations.iter().map(|one| {
        let before = *used;
        *used += one.payloads();
        before
    });
    counts.collect()
}

impl TickTime {
    /// The milliseconds from the beginning of the scene to the tick of a call at `now`.
    pub(crate) fn since_start(self, now: u64) -> u64 {
        const SECOND: u64 = 1000;
        match self {
            Self::Since(seconds) => u64::from(seconds) * SECOND,
            Self::Now(seconds) => {
                (now / SECOND).saturating_add_signed(seconds.into()) * SECOND
            }
        }
    }
}

impl DispositionKind {
    /// A representative of the dispositions that one command of a settlement carries
    /// out together (R8): backends end and give back jobs by a command each, and retry,
    /// bury and postpone them by one command.
    pub(crate) fn part(self) -> Self {
        match self {
            Self::Bury | Self::Retry(_) | Self::Postpone(_) => Self::Bury,
            Self::DoneWith(_) => Self::DoneWith(0),
            other => other,
        }
    }
}

impl Draft {
    /// The letters of the options in the text of a job: delay, expiry, priority,
    /// client's id, unique key, unique key that reschedules, attempts, lease of its
    /// own, header, kept result (its value), client's id of the job to follow.
    pub(crate) const LETTERS: [char; 11] =
        ['d', 'e', 'p', 'i', 'k', 'r', 'm', 'o', 'h', 'v', 'f'];

    /// Gives the option with that letter this number.
    pub(crate) fn set(&mut self, letter: char, number: u8) {
        if let Some(at) = Self::LETTERS.iter().position(|known| *known == letter) {
            self.0[at] = number;
        }
    }

    /// The number of the option with that letter. Zero if the job does not have it.
    pub(crate) fn option(&self, letter: char) -> u8 {
        let at = Self::LETTERS.iter().position(|known| *known == letter);
        at.map_or(0, |at| self.0[at])
    }
}

/// The states for which the operation `peek` lists jobs.
pub(crate) const STATES: [JobState; 4] =
    [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead];
