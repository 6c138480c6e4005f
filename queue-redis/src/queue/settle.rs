//! Applies settlements, and gives back the jobs of a released worker.

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{Error, Receipt, error::Operation, outcome::Released};

use super::{RedisQueue, bookkeeping_with};
use crate::{
    bookkeeping::{Failure, Finish, Settles, Step, Steps},
    pattern::{JobRef, Pattern},
};

#[async_trait]
impl<P: Pattern> Settles for RedisQueue<P> {
    fn steps(&self) -> Steps {
        self.pattern.bookkeeping().steps()
    }

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
    ) -> Result<Step, Error> {
        self.pattern.finish(finish, receipts).await
    }

    async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        self.pattern.finish_with_results(jobs).await
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Step, Error> {
        fail(&*self.pattern, Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Step, Error> {
        give_back(&*self.pattern, Operation::Settle, leases).await
    }
}

/// Schedules, postpones or buries jobs, as many as one step handles.
async fn fail(
    pattern: &impl Pattern,
    operation: Operation,
    failures: &[Failure<'_>],
) -> Result<Step, Error> {
    let jobs = failures.iter().map(|failure| JobRef::Leased(&failure.lease));
    bookkeeping_with(pattern, jobs).fail(operation, failures).await
}

/// Schedules or buries all failed jobs, in as many steps as necessary.
pub(super) async fn fail_all(
    pattern: &impl Pattern,
    operation: Operation,
    failures: &[Failure<'_>],
) -> Result<(), Error> {
    let mut steps = pattern.bookkeeping().steps().slow();
    while let Some(page) = steps.next_page(failures, |failure| failure.lease.len()) {
        steps.add(page.len(), fail(pattern, operation, page).await)?;
    }
    Ok(())
}

/// Makes jobs ready as if they had not been claimed, as many as one step handles, with
/// the job of the last lease at the front.
async fn give_back(
    pattern: &impl Pattern,
    operation: Operation,
    leases: &[Vec<u8>],
) -> Result<Step, Error> {
    let jobs = leases.iter().map(|lease| JobRef::GivenBack(lease));
    bookkeeping_with(pattern, jobs).give_back(operation, leases).await
}

/// Gives back the jobs of all leases, page by page, from the last lease to the first,
/// so that the job that was held longest is at the front afterwards.
pub(crate) async fn give_back_all<P: Pattern>(
    pattern: &P,
    mut leases: Vec<Vec<u8>>,
) -> Result<Released, Error> {
    leases.reverse();
    let mut steps = pattern.bookkeeping().steps().slow();
    while let Some(page) = steps.next_page(&leases, Vec::len) {
        let step = give_back(pattern, Operation::ReleaseWorker, page).await;
        steps.add(page.len(), step)?;
    }
    let jobs = leases.len() - steps.lost().len();
    if leases.iter().any(|lease| P::has_follow_up(lease)) {
        pattern.follow_up(Operation::ReleaseWorker).await;
    }
    Ok(Released { jobs: jobs as u64 })
}
