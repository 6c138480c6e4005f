//! Carries out settlements, and gives back the jobs of a released worker.

use async_trait::async_trait;
use relq_core::{
    Error, Receipt, error::Operation, limits::MAX_JOBS_PER_CALL, outcome::Released,
};

use super::{RedisQueue, bookkeeping_with};
use crate::{
    PartialEffect,
    bookkeeping::{Failure, Finish, Settles},
    pattern::{JobRef, Pattern},
};

#[async_trait]
impl<P: Pattern> Settles for RedisQueue<P> {
    fn has_side_records(&self, receipt: &Receipt) -> bool {
        P::has_side_records(receipt.token())
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        P::lease(receipt.token(), receipt.job().as_str().as_bytes())
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Vec<usize>, Error> {
        self.pattern.finish(finish, receipts).await
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Vec<usize>, Error> {
        fail(&*self.pattern, Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        give_back(&*self.pattern, Operation::Settle, leases).await
    }
}

/// Schedules or buries failed jobs. Returns the positions of the lost leases.
pub(super) async fn fail(
    pattern: &impl Pattern,
    operation: Operation,
    failures: &[Failure<'_>],
) -> Result<Vec<usize>, Error> {
    let jobs = failures.iter().map(|failure| JobRef::Leased(&failure.lease));
    bookkeeping_with(pattern, jobs).fail(operation, failures).await
}

/// Makes jobs ready as if they had not been claimed, with the job of the first lease at
/// the front. Returns the positions of the lost leases.
async fn give_back(
    pattern: &impl Pattern,
    operation: Operation,
    leases: &[Vec<u8>],
) -> Result<Vec<usize>, Error> {
    let jobs = leases.iter().map(|lease| JobRef::GivenBack(lease));
    bookkeeping_with(pattern, jobs).give_back(operation, leases).await
}

/// Gives back the jobs of all these leases, page by page. The last page goes first, so
/// that the job that was held longest is at the front in the end.
pub(crate) async fn give_back_all<P: Pattern>(
    pattern: &P,
    leases: &[Vec<u8>],
) -> Result<Released, Error> {
    let (mut jobs, mut parts) = (leases.len(), PartialEffect::default());
    for page in leases.rchunks(MAX_JOBS_PER_CALL.get() as usize) {
        let lost = give_back(pattern, Operation::ReleaseWorker, page).await;
        jobs -= parts.then(lost)?.len();
    }
    if leases.iter().any(|lease| P::has_follow_up(lease)) {
        pattern.follow_up(Operation::ReleaseWorker).await;
    }
    Ok(Released { jobs: jobs as u64 })
}
