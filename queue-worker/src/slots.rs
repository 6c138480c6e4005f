//! The slots of a worker: one for each handler that may run at once.

use std::{collections::HashMap, future::pending, num::NonZeroU32, sync::Arc};

use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, Span};

use crate::{
    Cancellation, Failure, Handler, JobContext, RetryPolicy,
    attempt::{Ended, Program},
    readiness::Readiness,
    span,
};

/// The running handlers, each on a task, and the number of free slots. Dropping this
/// value drops the handlers' futures.
pub(crate) struct Slots<H> {
    capacity: usize,
    program: Arc<Program<H>>,
    tasks: JoinSet<Ended>,
    jobs: HashMap<Id, RunningJob>,
    readiness: Readiness,
}

struct RunningJob {
    job: JobContext,
    span: Span,
}

impl<H: Handler> Slots<H> {
    pub(crate) fn new(program: Program<H>) -> Self {
        let capacity =
            usize::try_from(program.settings.concurrency.get()).unwrap_or(usize::MAX);
        Self {
            capacity,
            program: Arc::new(program),
            tasks: JoinSet::new(),
            jobs: HashMap::new(),
            readiness: Readiness::default(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn running(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.running())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// For how many of `wanted` further jobs the handler is ready. Pending claims may
    /// return `asked` other jobs.
    pub(crate) fn ready_for(
        &self,
        wanted: NonZeroU32,
        asked: usize,
    ) -> Option<NonZeroU32> {
        self.readiness.room(&self.program.handler, wanted, asked)
    }

    /// The readiness of the handler, by which the claim loop waits for a change.
    pub(crate) fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    pub(crate) fn start(&mut self, job: JobContext) {
        let program = Arc::clone(&self.program);
        let running = job.clone();
        let span = span::open(&job);
        program.settings.observers.span_opened(&job, &span);
        let unstarted = self.readiness.unstarted();
        let attempt = async move { program.attempt(running, unstarted).await };
        let task = self.tasks.spawn(attempt.instrument(span.clone()));
        self.jobs.insert(task.id(), RunningJob { job, span });
        self.count_running();
    }

    /// Waits until an attempt ends. Never completes if no handler runs.
    pub(crate) async fn next_ended(&mut self) -> (JobContext, Ended) {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(joined) => {
                    if let Some(ended) = self.ended(joined) {
                        return ended;
                    }
                }
                None => pending().await,
            }
        }
    }

    /// Returns an attempt that has ended already. `None` if there is none.
    pub(crate) fn try_ended(&mut self) -> Option<(JobContext, Ended)> {
        let joined = self.tasks.try_join_next_with_id()?;
        self.ended(joined)
    }

    /// The policy by which a failed `job` is retried.
    pub(crate) fn retry_policy(&self, job: &JobContext) -> RetryPolicy {
        let Program { handler, settings } = &*self.program;
        handler.retry_policy(job).unwrap_or(settings.retry)
    }

    /// Cancels the token of every running job, and drops every handler's future at its
    /// next `await`.
    pub(crate) fn cut_off(&mut self) {
        let running = self.jobs.values();
        running.for_each(|running| running.job.cancel(Cancellation::ShutDown));
        self.tasks.abort_all();
    }

    /// Removes and returns the jobs whose handlers still run after they were cut off.
    /// Such a handler blocks its thread and cannot be stopped.
    pub(crate) fn take_stuck(&mut self) -> Vec<JobContext> {
        self.jobs.drain().map(|(_, running)| running.job).collect()
    }

    fn ended(
        &mut self,
        joined: Result<(Id, Ended), JoinError>,
    ) -> Option<(JobContext, Ended)> {
        let (id, ended) = match joined {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), without_answer(error)),
        };
        let RunningJob { job, span } = self.jobs.remove(&id)?;
        if let Ended::Answered(Err(failure)) = &ended {
            span::failed(&span, failure);
        }
        self.count_running();
        Some((job, ended))
    }

    fn count_running(&self) {
        self.program.settings.observers.progress.set_running(self.jobs.len());
    }
}

fn without_answer(error: JoinError) -> Ended {
    match error.try_into_panic() {
        Ok(panic) => {
            let words = panic
                .downcast_ref::<&str>()
                .copied()
                .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
                .unwrap_or("a panic without a message");
            Ended::Answered(Err(Failure::retry(format!(
                "the handler panicked: {words}"
            ))))
        }
        Err(_) => Ended::CutOff,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::{Delivery, JobId, Receipt};

    use super::*;
    use crate::settings::Settings;

    /// A handler may have given its token to another task, which ends only when the
    /// token fires. So the token fires also when the handler itself is dropped.
    #[tokio::test]
    async fn a_cut_off_cancels_the_token_of_each_job() {
        let handler = |_: JobContext| pending::<Result<(), Failure>>();
        let program = Program { handler, settings: Settings::default() };
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)));
        let mut slots = Slots::new(program);
        slots.start(job.clone());

        slots.cut_off();

        assert_eq!(job.cancellation(), Some(Cancellation::ShutDown), "the reason");
        assert!(matches!(slots.next_ended().await.1, Ended::CutOff), "it was cut off");
    }
}
