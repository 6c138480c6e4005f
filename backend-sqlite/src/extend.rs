//! Extends leases, and releases the jobs of a worker.

use std::time::Duration;

use relq_core::{
    Receipt, WorkerId,
    environment::Timestamp,
    outcome::{Extended, Released},
};

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::lease::job_of;
use crate::pages::Pages;
use crate::queue::SqliteQueue;
use crate::statements::{End, Ended};
use crate::store::{Store, WINDOW};

/// A step of a heartbeat: extends all the given leases by the same duration from now.
struct Extend {
    held: Vec<Receipt>,
    lease: Duration,
}

impl Call for Extend {
    type Answer = Vec<Extended>;

    fn weight(&self) -> usize {
        self.held.len()
    }

    fn run(&self, store: &Store<'_>) -> Result<Vec<Extended>, Failure> {
        let until = store.ms_after(self.lease);
        let mut has_ended_pieces = false;
        let mut extend = |receipt| {
            let (extended, has_ended) = extend_one(store, receipt, until)?;
            has_ended_pieces |= has_ended;
            Ok(extended)
        };
        let extended = self.held.iter().map(&mut extend).collect();
        if has_ended_pieces {
            maintenance::after_pieces_ended(store)?;
        }
        extended
    }
}

/// Extends a lease. Returns also whether it has ended a piece of a cancelled batch instead.
fn extend_one(
    store: &Store<'_>,
    receipt: &Receipt,
    until: i64,
) -> Result<(Extended, bool), Failure> {
    let lost = (Extended::LeaseLost, false);
    let Some(job) = job_of(receipt.token()) else { return Ok(lost) };
    if store.extend_lease(job, receipt.token(), until)? {
        return Ok((Extended::Until(Timestamp::from_unix_ms(until)), false));
    }
    if end_cancelled_piece(store, receipt, job)? {
        return Ok((Extended::Cancelled, true));
    }
    if store.was_cancelled(receipt.token())? {
        return Ok((Extended::Cancelled, false));
    }
    Ok(lost)
}

/// Ends a leased piece whose batch was cancelled. This happens in the transaction that
/// tells the worker about it (B7). Returns false if the lease was lost before.
fn end_cancelled_piece(
    store: &Store<'_>,
    receipt: &Receipt,
    job: i64,
) -> Result<bool, Failure> {
    let Some(held) = store.find_lease(job, receipt.token())? else { return Ok(false) };
    let end = Timestamp::from_unix_ms(held.lease_end).max(store.now);
    store.remember_cancelled(receipt.token(), end.plus(WINDOW).unix_ms())?;
    let end = End::Cancelled { leader: None };
    let moved = store.remove_job(job, &held.remembered, end)?;
    store.count_ended(Ended { cancelled: 1, ..Ended::default() })?;
    moved.cancel_orphans(store)?;
    Ok(true)
}

/// A step of the release of a worker: up to a page of its leased jobs are given back (R24),
/// and it is no longer listed (R33).
struct ReleaseWorker {
    worker: WorkerId,
}

impl Call for ReleaseWorker {
    type Answer = Released;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Released>, Failure> {
        let is_known = store.is_known(self.worker.as_str())?;
        Ok(if is_known { None } else { Some(Released::default()) })
    }

    fn run(&self, store: &Store<'_>) -> Result<Released, Failure> {
        store.forget_worker(self.worker.as_str())?;
        let jobs = store.release_worker(self.worker.as_str(), store.page)?;
        if jobs > 0 {
            store.wake_claims();
            maintenance::after_pieces_ended(store)?;
        }
        Ok(Released { jobs: u64::try_from(jobs).unwrap_or(u64::MAX) })
    }
}

impl SqliteQueue {
    /// Extends leases in steps, each of which extends a limited number of them (R21).
    pub(crate) async fn extend_steps(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Failure> {
        let (mut answers, mut pages) = (Vec::new(), Pages::default());
        for held in held.chunks(self.max_jobs_per_step()) {
            let step = Extend { held: held.to_vec(), lease };
            answers.extend(pages.then(self.db_thread().call(step).await)?);
        }
        Ok(answers)
    }

    /// Releases a worker in steps, each of which gives back a limited number of jobs (R21).
    pub(crate) async fn release_steps(
        &self,
        worker: &WorkerId,
    ) -> Result<Released, Failure> {
        let (mut total, mut pages) = (Released::default(), Pages::default());
        loop {
            let step = ReleaseWorker { worker: worker.clone() };
            let step = pages.then(self.db_thread().call(step).await)?;
            total.jobs += step.jobs;
            if step.jobs < self.max_jobs_per_step() as u64 {
                return Ok(total);
            }
        }
    }
}
