//! The calls that find a job, run it now, and list the workers (R31, R32, R33).

use std::num::NonZeroU32;

use async_trait::async_trait;
use relq_core::{
    Error, JobId, WorkerId,
    error::Operation,
    operator::{InspectQueue, JobLookup, JobRecord, PageCursor, RunNow, WorkersPage},
    outcome::Released,
};

use super::RedisQueue;
use crate::{PartialEffect, pattern::Pattern};

#[async_trait]
impl<P: Pattern> InspectQueue for RedisQueue<P> {
    /// Looks at the index, then at the names of the leases. Meanwhile the job may have
    /// moved to where the index leads, so it looks there again.
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error> {
        let index = self.pattern.bookkeeping();
        let followers = match index.find_job(job).await? {
            JobLookup::MaybeReady { followers } => followers,
            found => return Ok(found),
        };
        if let Some(leased) = self.pattern.leased_job(Operation::ReadJob, job).await? {
            let record = JobRecord::new(leased, followers);
            return Ok(JobLookup::Stored(Box::new(record)));
        }
        index.find_job(job).await
    }

    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error> {
        let (outcome, is_piece) = self.pattern.bookkeeping().run_now(job).await?;
        // A piece of a batch that is being cancelled ends, which may complete the batch.
        if is_piece {
            self.pattern.follow_up(Operation::RunNow).await;
        }
        Ok(outcome)
    }

    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        self.pattern.bookkeeping().workers(after, limit).await
    }
}

/// Gives back all jobs of a worker, and removes the worker from those that run. No job
/// depends on that list (R33), so a server that refuses to change it prevents nothing.
pub(super) async fn release_listed(
    pattern: &impl Pattern,
    worker: &WorkerId,
) -> Result<Released, Error> {
    let (removed, leases) = tokio::join!(
        biased;
        pattern.bookkeeping().remove_worker(worker),
        pattern.leases_of(worker),
    );
    if let Err(error @ (Error::Unusable { .. } | Error::Denied { .. })) = &removed {
        tracing::debug!(%error, "the worker stays listed until its time is over");
    }
    let begun = PartialEffect::of(std::slice::from_ref(&removed));
    let whole = |error| begun.whole(error);
    let released = pattern.release(leases.map_err(whole)?).await.map_err(whole)?;
    match removed {
        Ok(()) | Err(Error::Unusable { .. } | Error::Denied { .. }) => Ok(released),
        Err(error) => Err(PartialEffect::of(&[Ok(released)]).whole(error)),
    }
}
