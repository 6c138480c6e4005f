//! What may be true of one job.

use relq_core::JobState;

use crate::ready_order::ReadyPosition;

/// Milliseconds since the clock's start.
pub(crate) type Ms = u64;

/// One way in which things may stand with a job. A job of which all is known has one
/// possible state; each call whose answer was lost may add some, each answer rules some out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleState {
    pub(crate) location: JobLocation,
    /// Deliveries that count.
    pub(crate) attempt: u32,
    /// From then on it is not delivered any more.
    pub(crate) expires: Option<Ms>,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobLocation {
    /// Its push did not happen.
    Absent,
    /// Its push happened, and it was a duplicate.
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

/// A worker's hold on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// Which of the receipts; none when the claim's answer was lost.
    pub(crate) receipt: Option<usize>,
    /// Which run of which worker.
    pub(crate) run: usize,
    pub(crate) until: Ms,
    /// The claim, and the place in its answer.
    pub(crate) claim: u32,
    pub(crate) index: usize,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Discarded,
    /// With the receipt and the end of the lease that it had.
    Cancelled(Option<(usize, Ms)>),
    PurgedDead,
    /// With all that was remembered of it.
    Purged,
}

/// What the figures count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    In(JobState),
    Finished,
    Discarded,
    Cancelled,
    Nowhere,
}

impl PossibleState {
    pub(crate) fn at(self, location: JobLocation) -> Self {
        Self { location, ..self }
    }

    pub(crate) fn ended(self, end: End, at: Ms) -> Self {
        self.at(JobLocation::Gone { end, at })
    }

    /// Expired for sure, or, at the very moment, maybe.
    pub(crate) fn may_be_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub(crate) fn is_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at < now)
    }

    /// Whether it is ready, or due.
    pub(crate) fn is_up(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Ready(_) => true,
            JobLocation::Scheduled { due } => due <= now,
            _ => false,
        }
    }

    /// Whether a claim may deliver it.
    pub(crate) fn is_claimable(&self, now: Ms) -> bool {
        self.is_up(now) && !self.is_expired(now)
    }

    /// Whether it may hold its unique key (R16).
    pub(crate) fn may_hold_key(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Leased(_) => true,
            JobLocation::Scheduled { .. } | JobLocation::Ready(_) => {
                !self.is_expired(now)
            }
            _ => false,
        }
    }

    /// Whether it holds its unique key without a doubt. What was delivered had not
    /// expired; what was leased and heard of by nobody may have, and then another may
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

    /// A lease that has ended and that nobody took back yet.
    pub(crate) fn overdue(&self, now: Ms) -> Option<&Lease> {
        self.lease().filter(|lease| lease.until <= now)
    }

    /// Whether it is ready since that time.
    pub(crate) fn fell_due_at(&self, at: Ms) -> bool {
        matches!(self.location, JobLocation::Ready(ReadyPosition::Back { due: Some(due), .. }) if due == at)
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
