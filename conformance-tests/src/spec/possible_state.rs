//! One state that a job may be in, as far as the reference model knows.

use std::fmt;

use relq_core::operator::JobState;

use super::last_error::LastError;
use crate::spec::ready_order::ReadyPosition;

/// Milliseconds since the clock's start.
pub(crate) type Ms = u64;

/// One state that a job may be in. If everything is known about the job it has exactly
/// one. A call whose reply was lost may add states, and each answer rules some out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleState {
    pub(crate) location: JobLocation,
    /// The number of deliveries that count as attempts.
    pub(crate) attempt: u32,
    /// The time from which on the job is not delivered. `None` if it does not expire.
    pub(crate) expires: Option<Ms>,
    pub(crate) last_error: LastError,
    /// Whether the job was a piece that died and was redriven, so that it is a plain
    /// job now (B8).
    pub(crate) is_detached: bool,
    /// The record of a job that keeps its result: the number of the last progress, or of
    /// the result once the job is finished. Zero if there is none yet, and always for a
    /// job that keeps no result.
    pub(crate) value: u8,
    /// The last settlement call for the job whose reply was lost. `None` if no reply
    /// was lost.
    pub(crate) linked: Option<Link>,
}

/// A settlement call whose reply was lost, and whether it took effect in this possible
/// state. It took effect for all jobs of the call or for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) call: u32,
    pub(crate) happened: bool,
}

/// Where a job is in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobLocation {
    /// The push did not happen, so the job does not exist.
    Absent,
    /// The push happened and reported the job as a duplicate, so the job does not
    /// exist.
    Refused,
    Scheduled {
        due: Ms,
    },
    /// It waits until its leader is done (R30).
    Held,
    /// Its leader has ended and was not done. It is still scheduled, and a recovery
    /// cancels it (R30).
    Orphaned,
    Ready(ReadyPosition),
    Leased(Lease),
    /// A claim that waits has moved the job to its worker, and has not leased it yet: see
    /// [`Class::moves_before_leasing`](super::class::Class::moves_before_leasing). The
    /// lease is the one that it would have got. It counts as expired at `until`, or at
    /// any moment before.
    Moved(Lease),
    Dead,
    Gone {
        end: End,
        at: Ms,
    },
}

/// A worker's lease on a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The index of the receipt. `None` when the reply to the claim was lost.
    pub(crate) receipt: Option<usize>,
    /// The index of the run of the worker that holds the lease.
    pub(crate) run: usize,
    pub(crate) until: Ms,
    /// The number of the claim. `index` is the position of the job in the claim's
    /// result.
    pub(crate) claim: u32,
    pub(crate) index: usize,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Finished,
    Discarded,
    /// Cancelled. The pair is the receipt and the end of the last lease, if a claim
    /// returned one.
    Cancelled(Option<(usize, Ms)>),
    /// Cancelled because its leader ended and was not done (R30).
    Orphaned,
    PurgedDead,
    /// Removed by a purge of the queue, which also removed its id and its token.
    Purged,
}

/// The field of the stats that counts a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    In(JobState),
    Finished,
    Discarded,
    Cancelled,
    Nowhere,
}

/// The field of a batch's status that counts a piece.
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

    /// The state with the note that the lease of its attempt has expired (R11).
    pub(crate) fn with_lost_lease(self) -> Self {
        let last_error = self.last_error.with_lost_lease(self.attempt);
        Self { last_error, ..self }
    }

    /// The state in which a claim finds the job. If the job is leased, its lease has expired,
    /// and the claim notes that.
    pub(crate) fn taken_over(self) -> Self {
        match self.location {
            JobLocation::Leased(_) => self.with_lost_lease(),
            _ => self,
        }
    }

    pub(crate) fn linked(self, link: Link) -> Self {
        Self { linked: Some(link), ..self }
    }

    pub(crate) fn ended(self, end: End, at: Ms) -> Self {
        self.at(JobLocation::Gone { end, at })
    }

    /// Whether the job may have expired. At the exact moment of expiry it may or may
    /// not.
    pub(crate) fn may_be_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    pub(crate) fn is_expired(&self, now: Ms) -> bool {
        self.expires.is_some_and(|at| at < now)
    }

    /// Whether the job is ready, or scheduled and due.
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

    /// Whether the job may hold its unique key (R16). An expired job holds it only
    /// while it is leased.
    pub(crate) fn may_hold_key(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Leased(_) | JobLocation::Moved(_) => true,
            JobLocation::Scheduled { .. }
            | JobLocation::Held
            | JobLocation::Orphaned
            | JobLocation::Ready(_) => !self.is_expired(now),
            _ => false,
        }
    }

    /// Whether the job certainly holds its unique key. A job that a claim returned had
    /// not expired. A job that is leased without a known receipt may have expired, and
    /// then another job may have its key.
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

    /// The lease if it has certainly expired and no recovery has ended it yet.
    pub(crate) fn overdue(&self, now: Ms) -> Option<&Lease> {
        match &self.location {
            JobLocation::Leased(lease) | JobLocation::Moved(lease) => {
                Some(lease).filter(|lease| lease.until <= now)
            }
            _ => None,
        }
    }

    /// Whether a claim of this run of a worker has moved the job and not leased it.
    pub(crate) fn is_moved_to(&self, run: usize) -> bool {
        matches!(self.location, JobLocation::Moved(lease) if lease.run == run)
    }

    /// Whether a recovery may take the job back.
    pub(crate) fn may_be_overdue(&self, now: Ms) -> bool {
        let is_moved = matches!(self.location, JobLocation::Moved(_));
        is_moved || self.overdue(now).is_some()
    }

    /// Whether the job is ready because its delay ended at the time `at`.
    pub(crate) fn fell_due_at(&self, at: Ms) -> bool {
        matches!(self.location, JobLocation::Ready(ReadyPosition::Back { due: Some(due), .. }) if due == at)
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.location == JobLocation::Absent
    }

    /// The field of the batch's status that counts the job, if it is a piece (B2).
    pub(crate) fn in_batch(&self) -> Option<InBatch> {
        match self.location {
            JobLocation::Absent
            | JobLocation::Refused
            | JobLocation::Gone { end: End::Purged, .. } => None,
            _ if self.is_detached => Some(InBatch::Failed),
            JobLocation::Scheduled { .. }
            | JobLocation::Held
            | JobLocation::Orphaned
            | JobLocation::Ready(_) => Some(InBatch::Waiting),
            JobLocation::Leased(_) | JobLocation::Moved(_) => Some(InBatch::Leased),
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
            JobLocation::Scheduled { .. }
            | JobLocation::Held
            | JobLocation::Orphaned => Counted::In(JobState::Scheduled),
            JobLocation::Ready(_) => Counted::In(JobState::Ready),
            JobLocation::Leased(_) | JobLocation::Moved(_) => {
                Counted::In(JobState::Leased)
            }
            JobLocation::Dead => Counted::In(JobState::Dead),
            JobLocation::Gone { end: End::Finished, .. } => Counted::Finished,
            JobLocation::Gone { end: End::Discarded, .. } => Counted::Discarded,
            JobLocation::Gone { end: End::Cancelled(_) | End::Orphaned, .. } => {
                Counted::Cancelled
            }
            JobLocation::Gone { .. } => Counted::Nowhere,
        }
    }
}

/// The state in words, such as `leased until 30000 ms, attempt 1`, for a message.
impl fmt::Display for PossibleState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, attempt {}", self.location, self.attempt)?;
        if let Some(at) = self.expires {
            write!(f, ", expires at {at} ms")?;
        }
        if self.last_error != LastError::default() {
            write!(f, ", last error {:?}", self.last_error.to_string())?;
        }
        if self.is_detached {
            write!(f, ", no piece any more")?;
        }
        if self.value > 0 {
            write!(f, ", value {}", self.value)?;
        }
        match self.linked {
            Some(Link { call, happened: true }) => {
                write!(f, ", if settlement {call} took effect")
            }
            Some(Link { call, happened: false }) => {
                write!(f, ", if settlement {call} took no effect")
            }
            None => Ok(()),
        }
    }
}

impl fmt::Display for JobLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => f.write_str("not stored"),
            Self::Refused => f.write_str("refused as a duplicate"),
            Self::Scheduled { due } => write!(f, "scheduled for {due} ms"),
            Self::Ready(ReadyPosition::Front { .. }) => {
                f.write_str("ready at the front")
            }
            Self::Held => f.write_str("held by its leader"),
            Self::Orphaned => f.write_str("scheduled although its leader has ended"),
            Self::Ready(_) => f.write_str("ready"),
            Self::Leased(lease) => {
                write!(f, "leased by worker {} until {} ms", lease.run, lease.until)
            }
            Self::Moved(lease) => {
                write!(f, "moved to worker {} and not leased", lease.run)
            }
            Self::Dead => f.write_str("dead"),
            Self::Gone { end, at } => write!(f, "{} at {at} ms", end.as_str()),
        }
    }
}

impl End {
    fn as_str(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Discarded => "discarded",
            Self::Cancelled(_) => "cancelled",
            Self::Orphaned => "cancelled with its leader",
            Self::PurgedDead => "purged after its death",
            Self::Purged => "purged with the queue",
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::In(state) => state.as_str(),
            Self::Finished => "finished",
            Self::Discarded => "discarded",
            Self::Cancelled => "cancelled",
            Self::Nowhere => "not counted",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_described_in_words() {
        let lease =
            Lease { receipt: Some(0), run: 2, until: 30_000, claim: 1, index: 0 };
        let linked = Some(Link { call: 3, happened: false });
        let state = PossibleState {
            location: JobLocation::Leased(lease),
            attempt: 1,
            expires: Some(40_000),
            last_error: LastError::reported("it failed"),
            is_detached: false,
            value: 0,
            linked,
        };

        assert_eq!(
            state.to_string(),
            "leased by worker 2 until 30000 ms, attempt 1, expires at 40000 ms, last \
             error \"it failed\", if \
             settlement 3 took no effect"
        );
    }
}
