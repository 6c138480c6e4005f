//! One operation of a sequence.

mod text;

use relq_core::operator::JobState;

/// One operation, by one actor, with at most one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) who: Who,
    pub(crate) act: Act,
    pub(crate) fault: Option<InjectedFault>,
}

/// The actor of an operation.
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

/// The action. Numbers are indexes into the tables of [`super::draft`], or count back
/// from the newest receipt or job.
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
    /// Lists the jobs of a state.
    Peek(JobState),
    /// Counts the jobs.
    Stats,
    Release,
}

/// One number for each option of a job, in the order of [`Draft::LETTERS`]. Zero stands
/// for the option's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Draft(pub(crate) [u8; Draft::LETTERS.len()]);

/// A batch's options. Without slots it has no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchDraft {
    pub(crate) priority: u8,
    pub(crate) slots: u8,
}

/// A call that changes or reads a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchWord {
    Read,
    Seal,
    Cancel,
    Alter(BatchDraft),
}

/// A disposition on one of the actor's receipts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DraftSettlement {
    pub(crate) receipt: u8,
    pub(crate) disposition: DispositionKind,
}

/// A disposition, without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DispositionKind {
    Done,
    Discard,
    Bury,
    GiveBack,
    Retry(u8),
}

/// A fault at a step of the operation, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InjectedFault {
    pub(crate) how: How,
    pub(crate) step: u8,
}

/// The kind of fault.
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

impl DispositionKind {
    /// The dispositions that a call carries out together (R8): backends end, fail and
    /// give back jobs by a command for each.
    pub(crate) fn part(self) -> Self {
        match self {
            Self::Bury | Self::Retry(_) => Self::Bury,
            other => other,
        }
    }
}

impl Draft {
    /// Delay, expiry, priority, client's id, unique key, unique key that reschedules,
    /// attempts, lease of its own, header.
    pub(crate) const LETTERS: [char; 9] = ['d', 'e', 'p', 'i', 'k', 'r', 'm', 'o', 'h'];

    /// The number after a letter.
    pub(crate) fn option(&self, letter: char) -> u8 {
        let at = Self::LETTERS.iter().position(|known| *known == letter);
        at.map_or(0, |at| self.0[at])
    }
}

/// The states that `peek` lists.
pub(crate) const STATES: [JobState; 4] =
    [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead];
