//! Runs all operations on a queue that has many jobs or large jobs.

use std::{
    num::NonZeroU16,
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, Delivery, Disposition, JobId, NewJob, Queue, Receipt, Settlement,
    batch::{BatchId, BatchQueue, NewBatch},
    capabilities::Capability,
    environment::Environment,
    error::InvalidName,
    limits::MAX_JOBS_PER_CALL,
    operator::{JobState, PeekRequest, Selection},
    unique::UniqueKey,
};

use super::{Load, ONE_STEP, probe::Probe};
use crate::{
    failure::{CommandResult, Failure},
    growth::worker,
};

/// The length of a lease that does not expire during the operations.
const LONG: Duration = Duration::from_secs(3600);

/// The length of a lease that expires during the operations.
const SHORT: Duration = Duration::from_millis(100);

/// An expiry time so long that no job expires during the operations.
const EXPIRY: Duration = Duration::from_secs(7200);

/// The shortest delay of a delayed job. [`PUSH_TIME`] is added to it for each job, so
/// that all jobs are pushed before the first is due.
const SHORTEST_DELAY: Duration = Duration::from_secs(2);
const PUSH_TIME: Duration = Duration::from_micros(40);

/// The time limit for one operation.
const PATIENCE: Duration = Duration::from_secs(600);

/// How many jobs are cancelled by their ids.
const CANCELLED: usize = 10;

/// Runs all operations on an empty queue.
pub(super) async fn all(
    queue: &dyn Queue,
    load: Load,
    probe: &mut Probe,
) -> CommandResult {
    let many = Many { queue, load };
    many.ready(probe).await?;
    many.leased(probe).await?;
    many.dead(probe).await?;
    many.scheduled(probe).await?;
    many.with_side_records(probe).await?;
    many.in_a_batch(probe).await
}

/// A queue, and the number and size of the jobs to push into it.
struct Many<'a> {
    queue: &'a dyn Queue,
    load: Load,
}

impl Many<'_> {
    async fn ready(&self, probe: &mut Probe) -> CommandResult {
        probe.during("push", self.fill(|_, job| Ok(job))).await?;
        probe.during("stats", self.queue.stats()).await?;
        probe.during("peek of ready jobs", self.peek(JobState::Ready)).await?;
        let unknown = id("unknown")?;
        probe.during("cancel of an unknown job", self.queue.cancel(&unknown)).await?;
        probe.during("audit of ready jobs", self.audit()).await
    }

    async fn leased(&self, probe: &mut Probe) -> CommandResult {
        let holder = worker("holder")?;
        let held = probe.during("claim", self.claim_all(LONG)).await?;
        probe.during("peek of leased jobs", self.peek(JobState::Leased)).await?;
        probe.during("audit of leased jobs", self.audit()).await?;
        probe.during("extension", self.extend(&held)).await?;
        let half = held.len() / 2;
        let again =
            || Disposition::Retry { after: Duration::ZERO, error: "again".into() };
        probe.during("retry", self.settle(&held[..half], again)).await?;
        probe.during("recovery of retried jobs", self.recover()).await?;
        let later = || Disposition::Retry { after: SHORT, error: "later".into() };
        probe.during("retry with a delay", self.settle(&held[half..], later)).await?;
        probe.during("release of a worker", self.queue.release_worker(&holder)).await?;
        probe.during("recovery of released jobs", self.recover()).await?;
        tokio::time::sleep(2 * SHORT).await;
        probe.during("promotion of retried jobs", self.recover()).await?;

        self.claim_all(SHORT).await?;
        tokio::time::sleep(2 * SHORT).await;
        probe.during("recovery of expired leases", self.recover()).await
    }

    async fn dead(&self, probe: &mut Probe) -> CommandResult {
        self.bury_all(probe).await?;
        probe.during("peek of dead jobs", self.peek(JobState::Dead)).await?;
        probe.during("audit of dead jobs", self.audit()).await?;
        probe.during("redrive", self.queue.redrive(&Selection::All)).await?;
        self.bury_all(probe).await?;
        probe
            .during("purge of dead jobs", self.queue.purge_dead(&Selection::All))
            .await?;
        Ok(())
    }

    async fn scheduled(&self, probe: &mut Probe) -> CommandResult {
        // Give all jobs about the same due time.
        let due = Instant::now() + SHORTEST_DELAY + PUSH_TIME * self.jobs()?;
        let delayed = |_, job: NewJob| {
            Ok(job.delay(due.saturating_duration_since(Instant::now())))
        };
        probe.during("push with a delay", self.fill(delayed)).await?;
        probe.during("peek of scheduled jobs", self.peek(JobState::Scheduled)).await?;
        tokio::time::sleep_until(due.into()).await;
        probe.during("promotion", self.recover()).await?;
        probe.during("purge", self.queue.purge()).await?;
        Ok(())
    }

    /// Runs operations on jobs that have client-made ids, unique keys and times of
    /// expiry.
    async fn with_side_records(&self, probe: &mut Probe) -> CommandResult {
        if !self.queue.capabilities().supports(Capability::Unique) {
            return Ok(());
        }
        let has_expiry = self.queue.capabilities().supports(Capability::Expiry);
        let with_records = |number, job: NewJob| {
            let key = UniqueKey::new(format!("key {number}"))
                .map_err(|error| invalid(&error))?;
            let job = job.id(id(&format!("job {number}"))?).unique(key);
            Ok(if has_expiry { job.expires_in(EXPIRY) } else { job })
        };
        probe.during("push with side records", self.fill(with_records)).await?;
        for number in 0..CANCELLED.min(self.load.jobs / 2) {
            let job = id(&format!("job {number}"))?;
            probe.during("cancel of a ready job", self.queue.cancel(&job)).await?;
        }
        probe.during("audit of side records", self.audit()).await?;
        let (holder, held) = (worker("holder")?, self.claim_all(LONG).await?);
        let job = id(&format!("job {}", self.load.jobs - 1))?;
        probe.during("cancel of a leased job", self.queue.cancel(&job)).await?;
        let done = || Disposition::Done;
        probe.during("end of jobs with side records", self.settle(&held, done)).await?;
        probe
            .during("release with side records", self.queue.release_worker(&holder))
            .await?;
        probe.during("recovery with side records", self.recover()).await?;
        probe.during("purge with side records", self.queue.purge()).await?;
        Ok(())
    }

    async fn in_a_batch(&self, probe: &mut Probe) -> CommandResult {
        let Some(batches) = self.queue.batch_queue() else { return Ok(()) };
        let batch = BatchId::random(Environment::default().random());
        batches.create(&NewBatch::new(batch.clone())).await?;
        probe.during("add to a batch", self.add_all(batches, &batch)).await?;
        batches.seal(&batch).await?;
        let held = probe.during("claim of pieces", self.claim_some()).await?;
        probe.during("end of pieces", self.settle(&held, || Disposition::Done)).await?;
        probe.during("cancel of a batch", batches.cancel_batch(&batch)).await?;
        probe.during("removal of its pieces", self.recover()).await?;
        probe.during("purge of batches", self.queue.purge()).await?;
        Ok(())
    }

    fn jobs(&self) -> CommandResult<u32> {
        self.load.jobs.try_into().map_err(|_| Failure::Failed("too many jobs".into()))
    }

    /// Divides the jobs into push calls. The payloads of a call have about [`ONE_STEP`]
    /// bytes.
    fn calls(
        &self,
        change: impl Fn(usize, NewJob) -> CommandResult<NewJob>,
    ) -> impl Iterator<Item = CommandResult<Vec<NewJob>>> {
        let Load { jobs, payload, .. } = self.load;
        let each = (ONE_STEP / payload).clamp(1, MAX_JOBS_PER_CALL.get() as usize);
        let payload = relq::Bytes::from(vec![b'x'; payload]);
        (0..jobs).step_by(each).map(move |first| {
            let job = |number| {
                let job = NewJob::new(payload.clone()).max_attempts(NonZeroU16::MAX);
                change(number, job)
            };
            (first..jobs.min(first + each)).map(job).collect()
        })
    }

    async fn add_all(&self, batches: &dyn BatchQueue, to: &BatchId) -> CommandResult {
        for jobs in self.calls(|_, job| Ok(job)) {
            batches.add(to, &jobs?, None).await?;
        }
        Ok(())
    }

    async fn fill(
        &self,
        change: impl Fn(usize, NewJob) -> CommandResult<NewJob>,
    ) -> CommandResult {
        for jobs in self.calls(change) {
            self.queue.push(&jobs?, None).await?;
        }
        Ok(())
    }

    /// Reads all pages of the jobs in a state.
    async fn peek(&self, state: JobState) -> CommandResult {
        let mut ask = PeekRequest::new(state, MAX_JOBS_PER_CALL);
        while let Some(next) = self.queue.peek(&ask).await?.next {
            ask = ask.after(next);
        }
        Ok(())
    }

    async fn audit(&self) -> CommandResult {
        let audit = self.queue.audit().await?;
        match audit.problems.first() {
            None => Ok(()),
            Some(problem) => {
                Err(Failure::Failed(format!("the audit found: {problem}")))
            }
        }
    }

    /// Claims all ready jobs, and returns the first of them. The claims of some
    /// backends also take jobs whose lease has ended: they may return the first jobs
    /// again before the last.
    async fn claim_all(&self, lease: Duration) -> CommandResult<Vec<Delivery>> {
        let ask = ClaimRequest::new(worker("holder")?, lease).max(MAX_JOBS_PER_CALL);
        let (mut first, deadline) = (Vec::new(), Instant::now() + PATIENCE);
        let mut count = 0;
        loop {
            let claimed = self.queue.claim(&ask).await?;
            count += claimed.len();
            let is_empty = claimed.is_empty() && self.queue.stats().await?.ready == 0;
            if is_empty || count > self.load.jobs {
                return Ok(first);
            }
            if first.len() < MAX_JOBS_PER_CALL.get() as usize {
                first.extend(claimed);
            }
            if Instant::now() > deadline {
                return Err(Failure::Failed("the claims do not end".into()));
            }
        }
    }

    /// Makes one claim for as many jobs as a call may return.
    async fn claim_some(&self) -> CommandResult<Vec<Delivery>> {
        let ask = ClaimRequest::new(worker("holder")?, LONG).max(MAX_JOBS_PER_CALL);
        Ok(self.queue.claim(&ask).await?)
    }

    async fn extend(&self, held: &[Delivery]) -> CommandResult {
        let receipts: Vec<Receipt> =
            held.iter().map(|delivery| delivery.receipt.clone()).collect();
        for call in receipts.chunks(MAX_JOBS_PER_CALL.get() as usize) {
            self.queue.extend(&worker("holder")?, call, LONG).await?;
        }
        Ok(())
    }

    async fn settle(
        &self,
        held: &[Delivery],
        disposition: impl Fn() -> Disposition,
    ) -> CommandResult {
        let settlement = |delivery: &Delivery| {
            Settlement::new(delivery.receipt.clone(), disposition())
        };
        let all: Vec<_> = held.iter().map(settlement).collect();
        for call in all.chunks(MAX_JOBS_PER_CALL.get() as usize) {
            self.queue.settle(call).await?;
        }
        Ok(())
    }

    async fn bury_all(&self, probe: &mut Probe) -> CommandResult {
        let dead = || Disposition::Dead { error: "never".into() };
        loop {
            let held = self.claim_some().await?;
            if held.is_empty() && self.queue.stats().await?.ready == 0 {
                return Ok(());
            }
            probe.during("burial", self.settle(&held, dead)).await?;
        }
    }

    async fn recover(&self) -> CommandResult {
        let deadline = Instant::now() + PATIENCE;
        while self.queue.recover(MAX_JOBS_PER_CALL).await?.more {
            if Instant::now() > deadline {
                return Err(Failure::Failed("the recovery does not end".into()));
            }
        }
        Ok(())
    }
}

fn id(text: &str) -> CommandResult<JobId> {
    JobId::new(text).map_err(|error| invalid(&error))
}

fn invalid(error: &InvalidName) -> Failure {
    Failure::Failed(error.to_string())
}
