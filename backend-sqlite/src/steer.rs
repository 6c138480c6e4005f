//! The operator's calls that cancel a job, pause or resume claims, and purge the queue.

use relq_core::{
    JobId,
    environment::Timestamp,
    operator::{Cancelled, JobState},
};

use crate::batch::maintenance;
use crate::call::{Call, PAGE_WEIGHT};
use crate::failure::Failure;
use crate::statements::{End, Ended, Found};
use crate::store::{Store, WINDOW};

/// Cancels a job that is scheduled, ready or leased.
pub(crate) struct Cancel {
    pub(crate) job: JobId,
}

impl Call for Cancel {
    type Answer = Cancelled;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Cancelled>, Failure> {
        let found = store.find_to_cancel(self.job.as_str())?;
        Ok(if found.is_none() { Some(Cancelled::NotFound) } else { None })
    }

    fn run(&self, store: &Store<'_>) -> Result<Cancelled, Failure> {
        let Some(found) = store.find_to_cancel(self.job.as_str())? else {
            return Ok(Cancelled::NotFound);
        };
        let state = state_of(&found)?;
        if let (Some(token), Some(lease_end)) = (&found.token, found.at) {
            let end = Timestamp::from_unix_ms(lease_end).max(store.now);
            store.remember_cancelled(token, end.plus(WINDOW).unix_ms())?;
        }
        if found.is_held {
            store.remove_follower(found.job)?;
        }
        let end = End::Cancelled { leader: None };
        let moved = store.remove_job(found.job, &found.remembered, end)?;
        store.count_ended(Ended { cancelled: 1, ..Ended::default() })?;
        moved.cancel_orphans(store)?;
        if found.batch.is_some() {
            maintenance::after_pieces_ended(store)?;
        }
        Ok(Cancelled::Removed(state))
    }
}

fn state_of(found: &Found) -> Result<JobState, Failure> {
    [JobState::Scheduled, JobState::Ready, JobState::Leased]
        .into_iter()
        .find(|state| state.as_str() == found.state)
        .ok_or_else(|| Failure::unusable("a job is in no known state; run an audit"))
}

/// Pauses or resumes claims.
pub(crate) enum Steer {
    Pause,
    Resume,
}

impl Call for Steer {
    type Answer = ();

    fn run(&self, store: &Store<'_>) -> Result<(), Failure> {
        match self {
            Self::Pause => store.set_paused(1),
            Self::Resume => {
                store.wake_claims();
                store.set_paused(0)
            }
        }
    }
}

/// Removes one page of the queue's jobs or, when no job is left, one page of what became of
/// jobs. The last page also resets the counters, and removes all remembered ids, push
/// calls, cancelled leases and batches.
pub(crate) struct Purge;

/// The result of one page of a purge.
pub(crate) struct Purged {
    pub(crate) jobs: u64,
    pub(crate) more: bool,
}

impl Call for Purge {
    type Answer = Purged;

    fn weight(&self) -> usize {
        PAGE_WEIGHT
    }

    fn run(&self, store: &Store<'_>) -> Result<Purged, Failure> {
        store.close_batches()?;
        let jobs = store.purge_page(store.page)?;
        let is_page = |rows| rows == store.page as usize;
        let more = is_page(jobs) || is_page(store.purge_results(store.page)?);
        if !more {
            store.forget_all()?;
            // Callers that wait for a batch listen to the same notifications as claims.
            store.wake_claims();
        }
        Ok(Purged { jobs: u64::try_from(jobs).unwrap_or(u64::MAX), more })
    }
}
