//! Mutants that read first, act in a second command, and return what they have read.

use std::{num::NonZeroU32, time::Duration};

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, Receipt, Settlement, Stats, WorkerId,
    batch::{BatchId, BatchStatus},
    operator::{Cancelled, JobState, JobView, PeekRequest, Redriven, Selection},
    outcome::{Extended, Recovered, Settled},
};

/// The views that an operator sees of all jobs in a state.
async fn views_of(right: &Right, state: JobState) -> Result<Vec<JobView>, Error> {
    let ask = PeekRequest::new(state, NonZeroU32::new(100).unwrap());
    Ok(right.peek(&ask).await?.jobs)
}

/// The ids of all jobs in a state.
async fn jobs_in(right: &Right, state: JobState) -> Result<Vec<JobId>, Error> {
    let jobs = views_of(right, state).await?;
    Ok(jobs.into_iter().filter_map(|job| job.id).collect())
}

/// Reports a settlement as applied if an earlier command saw its job leased, in the
/// same attempt.
pub(crate) struct SettlesByALook;

#[async_trait]
impl Override for SettlesByALook {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let overdue = right.stats().await?.overdue;
        let leased = views_of(right, JobState::Leased).await?;
        let answers = right.settle(done).await?;
        let seen = done.iter().zip(answers).map(|(one, answer)| {
            let is_it = |job: &JobView| {
                job.id.as_ref() == Some(one.receipt.job())
                    && job.attempt == one.receipt.attempt()
            };
            let was_leased = leased.iter().any(is_it);
            let is_sure = was_leased && overdue == 0 && leased.len() == 1;
            if is_sure { Settled::Applied } else { answer }
        });
        Ok(seen.collect())
    }
}

/// Reports a settlement as applied if an earlier command saw its job leased.
pub(crate) struct AcksByALook;

#[async_trait]
impl Override for AcksByALook {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let leased = jobs_in(right, JobState::Leased).await?;
        let answers = right.settle(done).await?;
        let seen = done.iter().zip(answers).map(|(one, answer)| {
            if leased.contains(one.receipt.job()) { Settled::Applied } else { answer }
        });
        Ok(seen.collect())
    }
}

/// Reads the ready jobs, claims as many in a second command, and returns the payloads
/// that it has read.
pub(crate) struct PeeksThenMoves;

#[async_trait]
impl Override for PeeksThenMoves {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let seen = views_of(right, JobState::Ready).await?;
        let mut taken = right.claim(ask).await?;
        for (one, seen) in taken.iter_mut().zip(seen) {
            one.payload = seen.payload;
        }
        Ok(taken)
    }
}

/// Reports a lease as extended if an earlier command saw its job leased.
pub(crate) struct ExtendsByALook;

#[async_trait]
impl Override for ExtendsByALook {
    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let overdue = right.stats().await?.overdue;
        let leased = jobs_in(right, JobState::Leased).await?;
        let until = right.environment.clock().now().plus(lease);
        let answers = right.extend(worker, held, lease).await?;
        let seen = held.iter().zip(answers).map(|(one, answer)| {
            let is_sure = leased.contains(one.job()) && overdue == 0;
            let is_lost = answer == Extended::LeaseLost && leased.len() == 1;
            if is_sure && is_lost { Extended::Until(until) } else { answer }
        });
        Ok(seen.collect())
    }
}

/// Reports as many redriven jobs as an earlier command saw dead jobs.
pub(crate) struct RedrivesByALook;

#[async_trait]
impl Override for RedrivesByALook {
    async fn redrive(
        &self,
        right: &Right,
        which: &Selection,
    ) -> Result<Redriven, Error> {
        let dead = right.stats().await?.dead;
        let mut redriven = right.redrive(which).await?;
        if redriven == Redriven::default() && matches!(which, Selection::All) {
            redriven.moved = dead;
        }
        Ok(redriven)
    }
}

/// Reports as many purged jobs as an earlier command saw dead jobs.
pub(crate) struct PurgesByALook;

#[async_trait]
impl Override for PurgesByALook {
    async fn purge_dead(&self, right: &Right, which: &Selection) -> Result<u64, Error> {
        let dead = right.stats().await?.dead;
        let removed = right.purge_dead(which).await?;
        let is_all = matches!(which, Selection::All);
        Ok(if is_all { dead.max(removed) } else { removed })
    }
}

/// Counts the ready jobs in one call and all others in another.
pub(crate) struct CountsTwice;

#[async_trait]
impl Override for CountsTwice {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let ready = right.stats().await?.ready;
        let mut stats = right.stats().await?;
        stats.ready = ready;
        Ok(stats)
    }
}

/// Cancels a job only if an earlier command saw it.
pub(crate) struct CancelsByALook;

#[async_trait]
impl Override for CancelsByALook {
    async fn cancel(&self, right: &Right, job: &JobId) -> Result<Cancelled, Error> {
        for state in [JobState::Scheduled, JobState::Ready, JobState::Leased] {
            if jobs_in(right, state).await?.contains(job) {
                return right.cancel(job).await;
            }
        }
        Ok(Cancelled::NotFound)
    }
}

/// Cancels a scheduled job in two commands. If a claim promotes it in between, the call
/// reports all the same that it was removed.
pub(crate) struct CancelsAPromotedJob;

#[async_trait]
impl Override for CancelsAPromotedJob {
    async fn cancel(&self, right: &Right, job: &JobId) -> Result<Cancelled, Error> {
        let is_scheduled = jobs_in(right, JobState::Scheduled).await?.contains(job);
        let cancelled = match is_scheduled {
            true if !jobs_in(right, JobState::Scheduled).await?.contains(job) => {
                Cancelled::Removed(JobState::Scheduled)
            }
            _ => right.cancel(job).await?,
        };
        Ok(cancelled)
    }
}

/// Claims if an earlier command saw that the queue was not paused.
pub(crate) struct LooksForThePause;

#[async_trait]
impl Override for LooksForThePause {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        if right.stats().await?.paused {
            Ok(Vec::new())
        } else {
            right.claim(ask).await
        }
    }
}

/// Counts the leased pieces of a batch in one call and all others in another.
pub(crate) struct CountsSlotsApart;

#[async_trait]
impl Override for CountsSlotsApart {
    async fn batch(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let slots = right.batches().batch(batch).await?.map(|status| status.leased);
        let status = right.batches().batch(batch).await?;
        Ok(status.map(|mut status| {
            status.leased = slots.unwrap_or(status.leased);
            status
        }))
    }
}

/// Recovers as many leases as an earlier command saw ended, whichever they are by then.
pub(crate) struct RecoversByALook;

/// The size of the largest page. A larger size in a call tells the script that the
/// mutant has already looked.
const MOST: u32 = 60;

/// If the page size of a recovery exceeds [`MOST`], the script of `zset` takes back the
/// leases that end first, without a look at the time.
pub(crate) const TAKES_WHAT_WAS_SEEN: [[&str; 3]; 2] = [
    [
        "recover",
        "local page = tonumber(ARGV[1])",
        "local page = tonumber(ARGV[1]) local is_stale = page > 60 \
         if is_stale then page = page - 60 end",
    ],
    [
        "recover",
        "redis.call('ZRANGE', keys.leased, now_ms, '-inf', 'BYSCORE', 'REV', 'LIMIT', \
         0, page + 1)",
        "is_stale and redis.call('ZREVRANGE', keys.leased, -page, -1) or \
         redis.call('ZRANGE', keys.leased, now_ms, '-inf', 'BYSCORE', 'REV', 'LIMIT', \
         0, page + 1)",
    ],
];

#[async_trait]
impl Override for RecoversByALook {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let page = page.get().min(MOST);
        let Stats { overdue, scheduled, .. } = right.stats().await?;
        let seen = u32::try_from(overdue).unwrap_or(page);
        let is_stale = scheduled == 0 && (1..=page).contains(&seen);
        let page = if is_stale { MOST + seen } else { page };
        right.recover(NonZeroU32::new(page).unwrap()).await
    }
}
