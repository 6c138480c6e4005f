//! The operations of an operator in a running sequence.

use std::num::NonZeroU32;

use relq_core::{
    JobId,
    operator::{JobState, PeekRequest, Selection},
};

use super::super::{
    actors::Observed,
    operation::{Act, InjectedFault, Who},
    reference::{CheckResult, Knowledge, Reference},
    runner::{CallEffect, Runner},
};

impl Runner {
    /// Makes a call that only operators make, such as a pause, a redrive or a purge.
    pub(in crate::spec) async fn operate(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: &Act,
    ) -> CheckResult {
        match act {
            Act::Cancel { job } => match self.recent(*job).and_then(|at| self.id(at)) {
                Some(id) => self.cancel(who, fault, id).await,
                None => Ok(()),
            },
            Act::CancelUnknown => {
                let unknown = JobId::new("unknown").expect("a valid id");
                self.cancel(who, fault, unknown).await
            }
            Act::Pause => self.steer(who, fault, true).await,
            Act::Resume => self.steer(who, fault, false).await,
            Act::Redrive => self.redrive(who, fault, None).await,
            Act::RedriveOne { job } => match self.recent(*job) {
                Some(at) => self.redrive(who, fault, Some(at)).await,
                None => Ok(()),
            },
            Act::PurgeDead => self.purge_dead(who, fault).await,
            Act::Purge => self.purge(who, fault).await,
            Act::Peek(state) => self.peek(who, fault, *state).await,
            Act::Stats => self.stats(who, fault).await,
            Act::Audit => self.audit(who, fault).await,
            other => self.inspect(who, fault, other).await,
        }
    }

    pub(in crate::spec) async fn cancel(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        id: JobId,
    ) -> CheckResult {
        let named = id.clone();
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.cancel(&named).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answer) => self.reference.cancelled(&id, answer),
            other => self.unanswered(&other, &CallEffect::Cancel(id)),
        }
    }

    pub(in crate::spec) async fn steer(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        pauses: bool,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move {
                    if pauses { queue.pause().await } else { queue.resume().await }
                })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(()) => {
                self.reference.steered(pauses, Knowledge::Done);
                Ok(())
            }
            other => self.unanswered(&other, &CallEffect::Steer(pauses)),
        }
    }

    pub(in crate::spec) async fn redrive(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        job: Option<usize>,
    ) -> CheckResult {
        let which = match job.map(|at| self.id(at)) {
            None => Selection::All,
            Some(None) => return Ok(()),
            Some(Some(id)) => Selection::Only(vec![id]),
        };
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.redrive(&which).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answer) => self.reference.redriven(job, &answer),
            other => self.unanswered(&other, &CallEffect::Redrive(job)),
        }
    }

    pub(in crate::spec) async fn purge_dead(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { queue.purge_dead(&Selection::All).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(removed) => self.reference.dead_purged(removed),
            other => self.unanswered(&other, &CallEffect::PurgeDead),
        }
    }

    /// Lists the jobs of a state in one page, which is enough for every sequence.
    pub(in crate::spec) async fn peek(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        state: JobState,
    ) -> CheckResult {
        let ask = PeekRequest::new(state, NonZeroU32::new(1000).expect("not zero"));
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.peek(&ask).await }))
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(page) => self.reference.peeked(state, &page.jobs),
            // A peek without a result needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }

    pub(in crate::spec) async fn stats(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.stats().await }))
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(stats) => self.reference.counted(&stats),
            // Stats without a result need no record, because they change nothing.
            _ => Ok(()),
        }
    }

    pub(in crate::spec) async fn audit(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.audit().await }))
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(audit) => Reference::is_sound(&audit),
            // An audit without a result needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }

    pub(in crate::spec) async fn purge(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| Box::pin(async move { queue.purge().await }))
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(removed) => self.reference.purged(removed),
            other => self.unanswered(&other, &CallEffect::Purge),
        }
    }
}
