//! Calls for a single job, and calls that split many jobs into pages.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;

use crate::{
    ClaimRequest, Delivery, Disposition, Error, NewJob, Receipt, ReliableQueue,
    Settlement,
    outcome::{Pushed, Settled},
};

/// Conveniences on every [`ReliableQueue`].
#[async_trait]
pub trait ReliableQueueExt: ReliableQueue {
    /// Pushes one job.
    ///
    /// # Errors
    /// As [`ReliableQueue::push`].
    async fn push_one(&self, job: NewJob) -> Result<Pushed, Error> {
        let pushed = self.push(std::slice::from_ref(&job), None).await?;
        Ok(pushed.into_iter().next().expect("push answers for each job"))
    }

    /// Pushes any number of jobs, in as many calls as [`max_jobs_per_call`] and
    /// [`max_bytes_per_push`] ask for.
    ///
    /// Each call is all or nothing, but the whole push is not. On an error the second
    /// field of the pair is the number of jobs, from the start, that are certainly
    /// stored.
    ///
    /// [`max_jobs_per_call`]: crate::capabilities::Limits::max_jobs_per_call
    /// [`max_bytes_per_push`]: crate::capabilities::Limits::max_bytes_per_push
    ///
    /// # Errors
    /// As [`ReliableQueue::push`].
    async fn push_all(&self, jobs: &[NewJob]) -> Result<Vec<Pushed>, (Error, usize)> {
        let limits = &self.capabilities().limits;
        let mut pushed = Vec::with_capacity(jobs.len());
        let mut rest = jobs;
        while !rest.is_empty() {
            let (page, after) = rest.split_at(limits.jobs_of_one_push(rest));
            rest = after;
            match self.push(page, None).await {
                Ok(answers) => pushed.extend(answers),
                Err(error) => return Err((error, pushed.len())),
            }
        }
        Ok(pushed)
    }

    /// Claims one job, waiting as `ask` says.
    ///
    /// # Errors
    /// As [`ReliableQueue::claim`].
    async fn claim_one(&self, ask: &ClaimRequest) -> Result<Option<Delivery>, Error> {
        let ask = ask.clone().max(NonZeroU32::MIN);
        Ok(self.claim(&ask).await?.pop())
    }

    /// Settles one job.
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn settle_one(
        &self,
        receipt: &Receipt,
        disposition: Disposition,
    ) -> Result<Settled, Error> {
        let settlement = Settlement::new(receipt.clone(), disposition);
        let settled = self.settle(&[settlement]).await?;
        Ok(settled.into_iter().next().expect("settle answers for each settlement"))
    }

    /// The job succeeded (R8).
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn ack(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Done).await
    }

    /// The job failed and must be retried after `after`.
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn retry(
        &self,
        receipt: &Receipt,
        after: Duration,
        error: &str,
    ) -> Result<Settled, Error> {
        let disposition = Disposition::Retry { after, error: error.to_owned() };
        self.settle_one(receipt, disposition).await
    }

    /// The job failed for good and joins the dead letters.
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn bury(&self, receipt: &Receipt, error: &str) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Dead { error: error.to_owned() }).await
    }

    /// The job is dropped without having succeeded.
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn discard(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Discard).await
    }

    /// The job was not run: it goes back to the queue, and the attempt is not counted.
    ///
    /// # Errors
    /// As [`ReliableQueue::settle`].
    async fn give_back(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::GiveBack).await
    }
}

impl<Q: ReliableQueue + ?Sized> ReliableQueueExt for Q {}
