//! The checks after each operation of a sequence.

use std::num::NonZeroU32;

use futures_util::future::try_join_all;
use relq_core::{
    Error, JobId, Queue, Stats,
    batch::BatchStatus,
    operator::{Audit, JobState, JobView, PeekRequest, StateDetail},
    results::JobResult,
    schedule::Schedules,
};

use super::super::{
    reference::{CheckResult, Reference},
    runner::{Runner, Scrutiny},
};

/// The contents of a store while no call is running.
struct Seen {
    batches: Option<Vec<BatchStatus>>,
    /// The status of each batch, by its number.
    statuses: Vec<(u8, Option<BatchStatus>)>,
    schedules: Option<Schedules>,
    results: Vec<(JobId, Option<JobResult>)>,
    stats: Stats,
    /// `None` if this look has no audit.
    audit: Option<Audit>,
    /// The jobs of each state that has any.
    listed: Vec<(JobState, Vec<JobView>)>,
}

impl Seen {
    /// R29: checks that the result of a dead job says what the list of the dead says.
    fn dead_are_told_alike(&self) -> CheckResult {
        let jobs = self.listed.iter().flat_map(|(_, jobs)| jobs);
        for job in jobs {
            let StateDetail::Dead { reason, .. } = &job.detail else { continue };
            let told = self.results.iter().find(|(id, _)| Some(id) == job.id.as_ref());
            let Some((id, Some(JobResult::Dead { error }))) = told else { continue };
            if error != reason {
                return Err(format!("R29: {id} is told as {error:?}, not {reason:?}"));
            }
        }
        Ok(())
    }
}

/// One look in this many has an audit, and the last look of a sequence. On stream an audit
/// sends more than half of the commands of a look, and what it finds usually stays.
const AUDITED: usize = 3;

/// A page that holds all jobs of a sequence.
const PAGE: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

impl Runner {
    /// Reads the batches, the schedules, the results, the stats, the audit and the jobs of
    /// each state after an operation, while no call is running, and checks them.
    pub(in crate::spec) async fn look(&mut self) -> CheckResult {
        self.looks += 1;
        self.reference.conclude()?;
        let seen = self.see().await.map_err(|error| error.full_message())?;
        if let Some(batches) = &seen.batches {
            self.reference.batches_seen(batches)?;
        }
        for (number, status) in &seen.statuses {
            self.reference.batch_seen(*number, status.as_ref())?;
        }
        if let Some(schedules) = &seen.schedules {
            self.reference.schedules_seen(schedules)?;
            self.reference.conclude()?;
        }
        for (id, told) in &seen.results {
            self.reference.told(id, told.as_ref())?;
        }
        self.reference.conclude()?;
        if self.scrutiny == Scrutiny::Printed {
            self.reference.tell(&seen.stats);
        }
        self.reference.counted(&seen.stats)?;
        if let Some(audit) = &seen.audit {
            self.reference.audited(audit, &seen.stats)?;
        }
        self.reference.conclude()?;
        for (state, jobs) in &seen.listed {
            self.reference.peeked(*state, jobs)?;
        }
        seen.dead_are_told_alike()?;
        self.reference.conclude()
    }

    /// Reads the store by calls that run at once, because waiting for one after the other
    /// would take most of the time of a sequence. The replies of a record are in the order of
    /// these calls.
    async fn see(&self) -> Result<Seen, Error> {
        let witness = self.actors.witness();
        let (batches, statuses, schedules, results, stats, audit) = tokio::try_join!(
            biased;
            list_batches(witness),
            self.read_batches(witness),
            list_schedules(witness),
            self.read_results(witness),
            witness.stats(),
            self.sampled_audit(witness),
        )?;
        let listed = self.list(witness, &stats).await?;
        Ok(Seen { batches, statuses, schedules, results, stats, audit, listed })
    }

    /// Reads the audit, unless this look has none.
    async fn sampled_audit(&self, queue: &dyn Queue) -> Result<Option<Audit>, Error> {
        let is_left_out =
            self.scrutiny == Scrutiny::Sampled && !self.looks.is_multiple_of(AUDITED);
        if is_left_out { Ok(None) } else { queue.audit().await.map(Some) }
    }

    /// Lists the jobs of each state that has any. A record has no such reply.
    async fn list(
        &self,
        queue: &dyn Queue,
        stats: &Stats,
    ) -> Result<Vec<(JobState, Vec<JobView>)>, Error> {
        let counts = [
            (JobState::Ready, stats.ready),
            (JobState::Scheduled, stats.scheduled),
            (JobState::Leased, stats.leased),
            (JobState::Dead, stats.dead),
        ];
        let states = counts.into_iter().filter(|(_, jobs)| *jobs > 0);
        let states = states.filter(|_| !self.is_recorded);
        try_join_all(states.map(async |(state, _)| {
            let page = queue.peek(&PeekRequest::new(state, PAGE)).await?;
            Ok((state, page.jobs))
        }))
        .await
    }

    async fn read_batches(
        &self,
        queue: &dyn Queue,
    ) -> Result<Vec<(u8, Option<BatchStatus>)>, Error> {
        let Some(queue) = queue.batch_queue() else { return Ok(Vec::new()) };
        try_join_all(self.reference.batches.keys().map(async |number| {
            let status = queue.batch(&Reference::batch_id(*number)).await?;
            Ok((*number, status))
        }))
        .await
    }

    /// Reads the results of all known jobs. A record has no such reply: only the recorded
    /// calls have read results.
    async fn read_results(
        &self,
        queue: &dyn Queue,
    ) -> Result<Vec<(JobId, Option<JobResult>)>, Error> {
        let queue = queue.result_queue().filter(|_| !self.is_recorded);
        let Some(queue) = queue else { return Ok(Vec::new()) };
        let ids = self.reference.known_ids();
        let told = queue.read_results(&ids).await?;
        Ok(ids.into_iter().zip(told).collect())
    }
}

async fn list_batches(queue: &dyn Queue) -> Result<Option<Vec<BatchStatus>>, Error> {
    let Some(queue) = queue.batch_queue() else { return Ok(None) };
    let limit = NonZeroU32::new(100).expect("not zero");
    queue.list_batches(None, limit).await.map(Some)
}

async fn list_schedules(queue: &dyn Queue) -> Result<Option<Schedules>, Error> {
    let Some(queue) = queue.schedule_queue() else { return Ok(None) };
    queue.schedules().await.map(Some)
}
