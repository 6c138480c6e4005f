//! The operations on results of a running sequence.

use relq_core::{Queue, results::ResultQueue};

use super::super::{
    actors::Observed,
    draft,
    operation::{Act, InjectedFault, Who},
    reference::CheckResult,
    runner::{CallEffect, Runner},
};

impl Runner {
    /// Makes a call on results, if the backend keeps them.
    pub(in crate::spec) async fn result(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: &Act,
    ) -> CheckResult {
        if !self.reference.class.has_results() {
            return Ok(());
        }
        match act {
            Act::Report { receipt, value } => {
                self.report(who, fault, (*receipt, *value)).await
            }
            Act::Result { job } => self.read_result(who, fault, *job).await,
            other => Err(format!("`{other}` is not a call on results")),
        }
    }

    async fn report(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (receipt, value): (u8, u8),
    ) -> CheckResult {
        let Some(observed) = self.observed_by(who, receipt) else { return Ok(()) };
        let (receipt, progress) = (self.receipt(observed), draft::value(value));
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move {
                    results(&*queue).report_progress(&receipt, &progress).await
                })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.observed_answer()? {
            Observed::Answer(answer) => {
                self.reference.reported(observed, value, answer)
            }
            other => self.unanswered(&other, &CallEffect::Report(observed, value)),
        }
    }

    async fn read_result(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        job: u8,
    ) -> CheckResult {
        let Some(id) = self.recent(job).and_then(|at| self.id(at)) else {
            return Ok(());
        };
        let ids = [id.clone()];
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { results(&*queue).read_results(&ids).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(told) => {
                self.reference.told(&id, told.first().and_then(Option::as_ref))
            }
            // A read without a result needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }
}

fn results(queue: &dyn Queue) -> &dyn ResultQueue {
    queue.result_queue().expect("only backends with results get calls on them")
}
