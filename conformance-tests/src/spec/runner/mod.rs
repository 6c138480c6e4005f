//! Runs one sequence on a store and on the reference model at the same time.

mod batches;
mod effect;
mod end;
mod inspecting;
mod look;
mod operator;
mod restoring;
mod results;
mod schedules;
mod worker;

use std::{collections::BTreeMap, sync::Arc};

use relq_core::{
    JobId, NewJob, PushToken, Queue, QueueName, batch::Added, capabilities::Capability,
};

use super::{
    actors::{Actors, Observed, Site},
    draft,
    operation::{Act, InjectedFault, Operation, Who},
    pushing::{PushCall, ms},
    recorded::WORKERS,
    reference::{CheckResult, Reference, WINDOW},
    sequence::{Sequence, Steps},
};
use crate::{Subject, spec::class::Class};
pub(super) use effect::CallEffect;

/// The state of one running sequence.
pub(crate) struct Runner {
    pub(super) actors: Actors,
    pub(super) reference: Reference,
    /// The receipts that each worker received, including those of earlier workers in
    /// its place that died.
    pub(super) observed: BTreeMap<Who, Vec<usize>>,
    /// The number of the current run of each worker. It has none before its first call.
    pub(super) runs: BTreeMap<Who, usize>,
    pub(super) run: usize,
    pub(super) late: Vec<CallEffect>,
    pub(super) payloads: usize,
    /// Whether the replies are recorded ones. If so, the name of a token must not
    /// depend on the order of the calls.
    is_recorded: bool,
    /// The number of jobs from which `cancel` and `redrive-one` count back, so that
    /// jobs pushed later do not change which job they name. `None` to count back from
    /// the newest job.
    pub(super) fixed_jobs: Option<usize>,
    pub(super) scrutiny: Scrutiny,
    /// How often the store was looked at.
    looks: usize,
}

/// How closely a run looks at the store after each operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scrutiny {
    /// Some looks have no audit.
    Sampled,
    /// Each look has an audit, so a failure is found as early as can be.
    Full,
    /// As `Full`. Each look prints the stats and the possible states of each job.
    Printed,
}

/// The counts of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunCounts {
    pub(crate) operations: u64,
    pub(crate) faults_fired: u64,
}

/// Runs a sequence to its end.
pub(crate) async fn run_sequence(
    site: &Site,
    subject: Arc<dyn Subject>,
    queue: QueueName,
    sequence: &Sequence,
    scrutiny: Scrutiny,
) -> Result<RunCounts, String> {
    let Sequence { steps, operations } = sequence;
    let actors = Actors::set(site, subject, queue, *steps).await?;
    let mut runner = Runner::on(actors, *steps, scrutiny);
    let ran = runner.all(operations).await;
    let faults_fired = runner.actors.faults_fired;
    runner.actors.take_down();
    ran.map(|()| RunCounts { operations: operations.len() as u64, faults_fired })
}

impl Runner {
    fn on(actors: Actors, steps: Steps, scrutiny: Scrutiny) -> Self {
        let class = Class::of(actors.capabilities());
        Self {
            actors,
            reference: Reference::new(class, steps),
            observed: BTreeMap::new(),
            runs: BTreeMap::new(),
            run: 0,
            late: Vec::new(),
            payloads: 0,
            is_recorded: false,
            fixed_jobs: None,
            scrutiny,
            looks: 0,
        }
    }

    /// A runner whose calls go to `queue`, which returns recorded replies.
    pub(super) fn of_recorded(name: QueueName, queue: &Arc<dyn Queue>) -> Self {
        let actors = Actors::of_recorded(name, queue);
        let mut runner = Self::on(actors, Steps::Usual, Scrutiny::Full);
        runner.runs = WORKERS.into();
        runner.run = WORKERS.len();
        runner.is_recorded = true;
        runner
    }

    async fn all(&mut self, sequence: &[Operation]) -> CheckResult {
        for (number, operation) in sequence.iter().enumerate() {
            let at =
                |wrong| format!("operation {}, `{operation}`: {wrong}", number + 1);
            self.one(operation).await.map_err(at)?;
        }
        self.end().await.map_err(|wrong| format!("in the end: {wrong}"))
    }

    async fn one(&mut self, operation: &Operation) -> CheckResult {
        self.act(operation).await?;
        self.look().await
    }

    /// Makes the calls of an operation, and compares their results with the reference.
    pub(super) async fn act(&mut self, operation: &Operation) -> CheckResult {
        let &Operation { who, ref act, fault } = operation;
        match act {
            Act::Push { jobs, token } => {
                self.push_new(who, fault, (None, jobs), *token).await
            }
            Act::CreateBatch { .. }
            | Act::Add { .. }
            | Act::Batch { .. }
            | Act::ListBatches => self.batch_call(who, fault, act).await,
            Act::PutSchedule { .. }
            | Act::RemoveSchedule { .. }
            | Act::Tick { .. }
            | Act::ListSchedules => self.schedule(who, fault, act).await,
            Act::Report { .. } | Act::Result { .. } => {
                self.result(who, fault, act).await
            }
            Act::Repeat { token } => self.repeat(who, fault, *token).await,
            Act::Claim { max, lease, wait } => {
                self.claim(who, fault, (*max, *lease, *wait)).await
            }
            Act::Settle(words) => self.settle(who, fault, words).await,
            Act::SettleAndClaim { words, max, lease } => {
                self.settle_and_claim(who, fault, words, (*max, *lease)).await
            }
            Act::Extend { receipts, lease } => {
                self.extend(who, fault, receipts, *lease).await
            }
            Act::ReleaseWorker => self.release_worker(who, fault).await,
            Act::Recover { page } => self.recover(who, fault, *page).await,
            Act::Advance(step) => self.advance(*step).await,
            Act::AdvanceBy(time) => {
                self.pass(*time);
                Ok(())
            }
            Act::Release => self.release().await,
            Act::Restore { jobs } => self.restore(who, fault, jobs).await,
            operated => self.operate(who, fault, operated).await,
        }
    }

    fn has_tokens(&self) -> bool {
        self.actors.capabilities().supports(Capability::PushTokens)
    }

    async fn push_new(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (batch, drafts): (Option<u8>, &[super::operation::Draft]),
        token: u8,
    ) -> CheckResult {
        // In a record, a token stands for one call, and clients may race with it.
        if self.is_recorded && self.reference.calls.contains_key(&token) {
            return self.repeat(who, fault, token).await;
        }
        let jobs = self.jobs(batch, drafts);
        self.reference.calls.remove(&token);
        let token = Some(token).filter(|token| *token > 0 && self.has_tokens());
        let call = PushCall { token, batch, ..PushCall::of(jobs) };
        self.push(who, fault, call, self.reference.step).await
    }

    async fn push(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        call: PushCall,
        step: u32,
    ) -> CheckResult {
        let step = if self.is_recorded { 0 } else { step };
        let token = call.token.map(|number| token(number, step));
        let (sent, with) = (call.clone(), token.clone());
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move {
                    let (jobs, token) = (&sent.jobs, with.as_ref());
                    let added = match sent.batch {
                        None => queue.push(jobs, token).await.map(Added::Stored),
                        Some(number) => {
                            let id = Reference::batch_id(number);
                            batches::batches(&*queue).add(&id, jobs, token).await
                        }
                    };
                    batches::or_cannot_follow(added)
                })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(Ok(answer)) => {
                self.reference.added(&call, token.as_ref(), &answer)
            }
            Observed::Answer(Err((leader, why))) => {
                self.reference.cannot_follow(&call, &leader, why)
            }
            other => self.unanswered(&other, &CallEffect::Push(call)),
        }
    }

    async fn repeat(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        number: u8,
    ) -> CheckResult {
        let now = self.reference.now;
        let known = self.reference.calls.get(&number);
        let Some(call) = known.filter(|call| now < call.first_at + WINDOW) else {
            return Ok(());
        };
        let (push, step) = (call.push.clone(), call.call);
        self.push(who, fault, push, step).await
    }

    async fn advance(&mut self, step: u8) -> CheckResult {
        if draft::outlasts_memory(step) {
            // A delayed command runs at the latest now, while ids and tokens are still
            // remembered.
            self.release().await?;
            self.reference.conclude()?;
        }
        self.pass(draft::step(step));
        Ok(())
    }

    pub(super) fn pass(&mut self, time: std::time::Duration) {
        self.actors.advance(time);
        self.reference.now += ms(time);
    }

    /// Lets the server execute all delayed commands, and records their possible
    /// effects.
    pub(super) async fn release(&mut self) -> CheckResult {
        self.actors.release().await?;
        for effect in std::mem::take(&mut self.late) {
            self.maybe(&effect);
            self.reference.conclude()?;
        }
        Ok(())
    }

    fn jobs(
        &mut self,
        batch: Option<u8>,
        drafts: &[super::operation::Draft],
    ) -> Vec<NewJob> {
        let describe = if batch.is_some() { draft::piece } else { draft::job };
        let mut jobs = Vec::new();
        for one in drafts {
            self.payloads += 1;
            let payload = format!("job {}", self.payloads);
            jobs.push(describe(one, payload, &self.reference.class));
        }
        draft::call(jobs)
    }

    /// The index of a job, given its distance from the newest job. `None` if there is
    /// no such job.
    pub(super) fn recent(&self, back: u8) -> Option<usize> {
        let jobs = self.fixed_jobs.unwrap_or(self.reference.jobs.len());
        jobs.checked_sub(usize::from(back) + 1)
    }

    pub(super) fn id(&self, job: usize) -> Option<JobId> {
        self.reference.jobs[job].id.clone()
    }
}

fn token(number: u8, call: u32) -> PushToken {
    PushToken::new(format!("token-{number}-{call}")).expect("a valid token")
}
