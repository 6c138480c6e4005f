//! The operations of a running sequence that find jobs, run them now and list workers.

use std::num::NonZeroU32;

use relq_core::{
    Error, Queue,
    operator::{InspectQueue, JobState, PeekRequest, WorkerReport, WorkerView},
};

use super::super::{
    actors::Observed,
    operation::{Act, InjectedFault, Who},
    reference::{CheckResult, Knowledge},
    runner::{CallEffect, Runner},
};

/// A page that holds all jobs and workers of a sequence, unless the backend makes it smaller.
const PAGE: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

impl Runner {
    /// Makes a call that finds jobs or workers, if the backend has such calls.
    pub(in crate::spec) async fn inspect(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: &Act,
    ) -> CheckResult {
        match act {
            _ if !self.reference.class.is_inspected() => Ok(()),
            Act::RunNow { job } => self.run_now(who, fault, *job).await,
            Act::Show { job } => self.show(who, fault, *job).await,
            Act::ReportWorker => self.report_worker(who, fault).await,
            Act::Workers => self.workers(who, fault).await,
            Act::Newest(state) => self.newest(who, fault, *state).await,
            other => Err(format!("`{other}` is not an operator's")),
        }
    }

    async fn run_now(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        job: u8,
    ) -> CheckResult {
        let Some(id) = self.recent(job).and_then(|at| self.id(at)) else {
            return Ok(());
        };
        let named = id.clone();
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { inspector(&*queue).run_now(&named).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answer) => self.reference.ran_now(&id, &answer),
            other => self.unanswered(&other, &CallEffect::RunNow(id)),
        }
    }

    async fn show(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        job: u8,
    ) -> CheckResult {
        let Some(id) = self.recent(job).and_then(|at| self.id(at)) else {
            return Ok(());
        };
        let named = id.clone();
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { inspector(&*queue).job(&named).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(found) => self.reference.found(&id, &found),
            // A look-up without an answer needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }

    async fn report_worker(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let (run, worker) = self.worker(who);
        let report = WorkerReport::new(worker.clone(), NonZeroU32::MIN);
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.report_worker(&report).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.observed_answer()? {
            Observed::Answer(()) => {
                self.reference.reported_worker(run, &worker, Knowledge::Done);
                Ok(())
            }
            other => self.unanswered(&other, &CallEffect::ReportWorker(run, worker)),
        }
    }

    async fn workers(&mut self, who: Who, fault: Option<InjectedFault>) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { all_workers(inspector(&*queue)).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(workers) => self.reference.listed_workers(&workers),
            // A list without an answer needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }

    /// Lists the jobs of a state newest first, in one page.
    async fn newest(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        state: JobState,
    ) -> CheckResult {
        let ask = PeekRequest::new(state, PAGE).newest_first();
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.peek(&ask).await }))
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(page) => self.reference.peeked(state, &page.jobs),
            // A peek without an answer needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }
}

/// Reads all pages of the workers. A backend may make them small.
async fn all_workers(queue: &dyn InspectQueue) -> Result<Vec<WorkerView>, Error> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = queue.workers(after.as_ref(), PAGE).await?;
        all.extend(page.workers);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(all),
        }
    }
}

fn inspector(queue: &dyn Queue) -> &dyn InspectQueue {
    queue.inspect_queue().expect("only a backend that finds jobs gets these calls")
}
