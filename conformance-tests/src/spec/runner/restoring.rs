//! The operation of a running sequence that restores jobs (R34).

use relq_core::{Queue, operator::RestoreQueue};

use super::super::{
    actors::Observed,
    operation::{InjectedFault, RestoreDraft, Who},
    pushing::PushCall,
    reference::CheckResult,
    restoring::Restored,
    runner::{CallEffect, Runner},
};

impl Runner {
    /// Restores jobs, if the backend can.
    pub(in crate::spec) async fn restore(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        drafts: &[RestoreDraft],
    ) -> CheckResult {
        if !self.reference.class.restores() {
            return Ok(());
        }
        let (mut call, mut views) = (PushCall::of(Vec::new()), Vec::new());
        for one in drafts {
            self.payloads += 1;
            let payload = format!("job {}", self.payloads);
            let (class, now) = (&self.reference.class, self.reference.now);
            let job = Restored::new(one, payload, class, now);
            views.push(job.view(|at| self.actors.time_at(at)));
            call.jobs.push(job.spec);
            call.past.push(job.past);
        }
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { restorer(&*queue).restore(&views).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answers) => self.reference.pushed(&call, None, &answers),
            other => self.unanswered(&other, &CallEffect::Push(call)),
        }
    }
}

fn restorer(queue: &dyn Queue) -> &dyn RestoreQueue {
    queue.restore_queue().expect("only a backend that restores jobs gets this call")
}
