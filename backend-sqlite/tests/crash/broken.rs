//! A SQLite queue that breaks one rule of the contract, with which the mutant tests
//! check that the crash tests find the error.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Operator, PushToken,
    Receipt, ReliableQueue, Settlement, Stats, WorkerId,
    batch::BatchQueue,
    capabilities::Capabilities,
    operator::{
        Audit, Cancelled, InspectQueue, JobState, Page, PeekRequest, Redriven,
        RestoreQueue, Selection, WorkerReport,
    },
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
};
use relq_sqlite::SqliteQueue;

/// The error that a broken queue has, and the rule that it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A push of many jobs stores them one by one (R5).
    PushesOneByOne,
    /// A call with many settlements applies them one by one, so a part can be lost
    /// (R8).
    SettlesOneByOne,
    /// A push on a full disk returns Ok (R1).
    DropsWhenFull,
    /// A worker that lost a lease still settles the job by its id, and so ends it (R7).
    SettlesById,
    /// A redrive removes a dead job and then pushes it again, in two steps (R3).
    RedrivesInTwoSteps,
    /// A claim removes its jobs from the store before they are settled (R1).
    ClaimsForGood,
    /// The worker that ends a batch pushes its completion in a separate step (B5).
    CompletesInTwoSteps,
    /// Pieces are added without their push token (R4).
    AddsWithoutToken,
}

/// A SQLite queue with one flaw.
#[derive(Debug)]
pub(crate) struct Broken {
    pub(crate) queue: SqliteQueue,
    pub(crate) flaw: Flaw,
}

impl Broken {
    async fn push_one_by_one(&self, jobs: &[NewJob]) -> Result<Vec<Pushed>, Error> {
        let mut pushed = Vec::new();
        for job in jobs {
            pushed.extend(self.queue.push(std::slice::from_ref(job), None).await?);
        }
        Ok(pushed)
    }

    async fn settle_one_by_one(
        &self,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        for one in done {
            settled.extend(self.queue.settle(std::slice::from_ref(one)).await?);
        }
        Ok(settled)
    }

    async fn settle_by_id(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let settled = self.queue.settle(done).await?;
        for (one, said) in done.iter().zip(&settled) {
            if *said == Settled::LeaseLost {
                self.queue.cancel(one.receipt.job()).await?;
            }
        }
        Ok(settled)
    }

    async fn claim_for_good(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        let taken = self.queue.claim(ask).await?;
        let done =
            |one: &Delivery| Settlement::new(one.receipt.clone(), Disposition::Done);
        // If the settlement fails, the jobs stay leased, and no rule is broken.
        drop(self.queue.settle(&taken.iter().map(done).collect::<Vec<_>>()).await);
        Ok(taken)
    }

    async fn redrive_in_two_steps(&self) -> Result<Redriven, Error> {
        let ask = PeekRequest::new(JobState::Dead, NonZeroU32::new(100).unwrap());
        let dead = self.queue.peek(&ask).await?.jobs;
        self.queue.purge_dead(&Selection::All).await?;
        let jobs: Vec<_> =
            dead.into_iter().map(|job| NewJob::new(job.payload)).collect();
        self.queue.push(&jobs, None).await?;
        Ok(Redriven::default())
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} that {:?}", self.queue, self.flaw)
    }
}

#[async_trait]
impl ReliableQueue for Broken {
    fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        match self.flaw {
            Flaw::PushesOneByOne => self.push_one_by_one(jobs).await,
            Flaw::DropsWhenFull => match self.queue.push(jobs, token).await {
                Err(Error::Full { .. }) => {
                    let id = JobId::new("cancel_safety").unwrap();
                    Ok(jobs.iter().map(|_| Pushed::Stored(id.clone())).collect())
                }
                other => other,
            },
            _ => self.queue.push(jobs, token).await,
        }
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        self.queue.part_of_job(job)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        match self.flaw {
            Flaw::ClaimsForGood => self.claim_for_good(ask).await,
            _ => self.queue.claim(ask).await,
        }
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        match self.flaw {
            Flaw::SettlesOneByOne => self.settle_one_by_one(done).await,
            Flaw::SettlesById => self.settle_by_id(done).await,
            Flaw::CompletesInTwoSteps => self.complete_in_two_steps(done).await,
            _ => self.queue.settle(done).await,
        }
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        self.queue.settle_and_claim(done, ask).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.queue.extend(worker, held, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.queue.release_worker(worker).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        self.queue.report_worker(report).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.queue.recover(page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        self.queue.open_another().await
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }
}

#[async_trait]
impl Operator for Broken {
    async fn stats(&self) -> Result<Stats, Error> {
        self.queue.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.queue.peek(ask).await
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        match self.flaw {
            Flaw::RedrivesInTwoSteps => self.redrive_in_two_steps().await,
            _ => self.queue.redrive(which).await,
        }
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.queue.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.queue.purge().await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.queue.cancel(job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.queue.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.queue.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.queue.audit().await
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        self.queue.inspect_queue()
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        self.queue.restore_queue()
    }
}
