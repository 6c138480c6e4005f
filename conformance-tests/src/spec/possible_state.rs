//! One possible state of a job.

use relq_core::operator::JobState;

use crate::spec::ready_order::ReadyPosition;

/// Milliseconds since the clock's start.
pub(crate) type Ms = u64;

/// One possible state of a job. A fully known job has exactly one. A call whose answer
/// was lost may add some, and each answer rules some out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleState {
    pub(crate) location: JobLocation,
    /// The number of deliveries that count.
    pub(crate) attempt: u32,
    /// The job is not delivered from this time on.
    pub(crate) expires: Option<Ms>,
    /// Whether a piece died and was redriven: it is a plain job now (B8).
    pub(crate) is_detached: bool,
    /// The last call whose answer was lost and that would have settled the job.
    pub(crate) linked: Option<Link>,
}

/// Whether a call happened whose answer was lost. It is the same for all of its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) call: u32,
    pub(crate) happened: bool,
}

/// The location of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobLocation {
    /// The push did not happen.
    Absent,
    /// The push happened, and the job was a duplicate.
    Refused,
    Scheduled {
        due: Ms,
    },
    Ready(ReadyPosition),
    Leased(Lease),
    Dead,
    Gone {
        end: End,
        at: Ms,
    },
}

/// A worker's lease on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The index of the receipt. `None` when the claim's answer was lost.
    pub(crate) receipt: Option<usize>,
    /// The index of the worker's run.
    pub(crate) run: usize,
    pub(crate) until: Ms,
    /// The claim, and the position in its answer.
    pub(crate) claim: u32,
    pub(crate) index: usize,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Discarded,
    /// With the receipt and the end of its last lease.
    Cancelled(Option<(usize, Ms)>),
    PurgedDead,
    /// The purge also removed its id and its token.
    Purged,
}

/// The states that the stats count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    In(JobState),
    Finished,
    Discarded,
    Cancelled,
    Nowhere,
}

/// The counts of a batch's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InBatch {
    Waiting,
    Leased,
    Done,
    Failed,
    Dropped,
}

impl InBatch {
    pub(crate) const ALL: [Self; 5] =
        [Self::Waiting, Self::Leased, Self::Done, Self::Failed, Self::Dropped];
}

impl PossibleState {
    pub(crate) fn at(self, location: JobLocation) -> Self {
        Self { location, ..self }
    }

    pub(crate) fn linked(self, link: Link) -> Self {
        Self { linked: Some(link), ..self }
    }

    pub(crate) fn ended(self, end: End, at: Ms) -> Self {
        self.at(JobLocation::Gone { end, at })
    }

    /// Certainly expired, or exactly at the moment of expiry, where both are possible.
    pub(crate) fn may_be_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub(crate) fn is_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at < now)
    }

    /// Whether the job is ready or due.
    pub(crate) fn is_up(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Ready(_) => true,
            JobLocation::Scheduled { due } => due <= now,
            _ => false,
        }
    }

    /// Whether a claim may deliver the job.
    pub(crate) fn is_claimable(&self, now: Ms) -> bool {
        self.is_up(now) && !self.is_expired(now)
    }

    /// Whether the job may hold its unique key (R16).
    pub(crate) fn may_hold_key(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Leased(_) => true,
            JobLocation::Scheduled { .. } | JobLocation::Ready(_) => {
                !self.is_expired(now)
            }
            _ => false,
        }
    }

    /// Whether the job certainly holds its unique key. A delivered job had not expired.
    /// A leased job that no answer named may have expired, and then another job may
    /// have its key.
    pub(crate) fn holds_key(&self, now: Ms) -> bool {
        let is_out = self.lease().is_some_and(|lease| lease.receipt.is_some());
        self.may_hold_key(now) && (is_out || !self.may_be_expired(now))
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.location {
            JobLocation::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    /// A lease that has expired and was not yet taken back.
    pub(crate) fn overdue(&self, now: Ms) -> Option<&Lease> {
        self.lease().filter(|lease| lease.until <= now)
    }

    /// Whether the job has been ready since that time.
    pub(crate) fn fell_due_at(&self, at: Ms) -> bool {
        matches!(self.location, JobLocation::Ready(ReadyPosition::Back { due: Some(due), .. }) if due == at)
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.location == JobLocation::Absent
    }

    /// Where a batch counts the job, if it is a piece of one (B2).
    pub(crate) fn in_batch(&self) -> Option<InBatch> {
        match self.location {
            JobLocation::Absent
            | JobLocation::Refused
            | JobLocation::Gone { end: End::Purged, .. } => None,
            _ if self.is_detached => Some(InBatch::Failed),
            JobLocation::Scheduled { .. } | JobLocation::Ready(_) => {
                Some(InBatch::Waiting)
            }
            JobLocation::Leased(_) => Some(InBatch::Leased),
            JobLocation::Dead | JobLocation::Gone { end: End::PurgedDead, .. } => {
                Some(InBatch::Failed)
            }
            JobLocation::Gone { end: End::Finished, .. } => Some(InBatch::Done),
            JobLocation::Gone { .. } => Some(InBatch::Dropped),
        }
    }

    pub(crate) fn counted(&self) -> Counted {
        match self.location {
            JobLocation::Absent | JobLocation::Refused => Counted::Nowhere,
            JobLocation::Scheduled { .. } => Counted::In(JobState::Scheduled),
            JobLocation::Ready(_) => Counted::In(JobState::Ready),
            JobLocation::Leased(_) => Counted::In(JobState::Leased),
            JobLocation::Dead => Counted::In(JobState::Dead),
            JobLocation::Gone { end: End::Finished, .. } => Counted::Finished,
            JobLocation::Gone { end: End::Discarded, .. } => Counted::Discarded,
            JobLocation::Gone { end: End::Cancelled(_), .. } => Counted::Cancelled,
            JobLocation::Gone { .. } => Counted::Nowhere,
        }
    }
}
