//! The operations on batches of a running sequence.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Error, JobId, NewJob, Queue,
    batch::{Added, BatchPriority, BatchQueue, Change},
    followers::CannotFollow,
};

use super::super::{
    actors::Observed,
    batching::BatchChange,
    draft,
    operation::{Act, BatchDraft, BatchWord, InjectedFault, Who},
    reference::{CheckResult, Knowledge, Reference},
    runner::{CallEffect, Runner},
};

impl Runner {
    /// Makes a call on batches, if the backend has them.
    pub(in crate::spec) async fn batch_call(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: &Act,
    ) -> CheckResult {
        if !self.reference.class.has_batches() {
            return Ok(());
        }
        match act {
            Act::Add { batch, jobs, token } => {
                self.push_new(who, fault, (Some(*batch), jobs), *token).await
            }
            Act::CreateBatch { batch, options } => {
                self.create_batch(who, fault, (*batch, *options)).await
            }
            Act::Batch { batch, word } => self.batch(who, fault, (*batch, *word)).await,
            _ => self.list_batches(who, fault).await,
        }
    }

    async fn create_batch(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (number, options): (u8, BatchDraft),
    ) -> CheckResult {
        let (priority, limit) = draft::batch(options);
        self.payloads += 1;
        let completion = NewJob::new(format!("complete {}", self.payloads));
        let new = self.reference.new_batch((priority, limit), &completion);
        let ask = draft::new_batch(number, options, completion);
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { batches(&*queue).create(&ask).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answer) => self.reference.created(number, new, answer),
            other => self.unanswered(&other, &CallEffect::CreateBatch(number, new)),
        }
    }

    /// Makes a call that changes or reads a batch, and compares the status that it
    /// returns.
    pub(in crate::spec) async fn batch(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (number, word): (u8, BatchWord),
    ) -> CheckResult {
        let change = change(word);
        let id = Reference::batch_id(number);
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move {
                    let batches = batches(&*queue);
                    match change {
                        BatchChange::Nothing if word == BatchWord::Wait => {
                            batches.wait_batch(&id, Duration::ZERO).await
                        }
                        BatchChange::Nothing => batches.batch(&id).await,
                        BatchChange::Seal => batches.seal(&id).await,
                        BatchChange::Cancel => batches.cancel_batch(&id).await,
                        BatchChange::Alter(priority, limit) => {
                            let change = Change::default().priority(priority);
                            batches.alter(&id, &change.limit(limit)).await
                        }
                    }
                })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(status) => {
                self.reference.batch_changed(number, change, Knowledge::Done);
                self.reference.conclude()?;
                self.reference.batch_seen(number, status.as_ref())
            }
            other => self.unanswered(&other, &CallEffect::Batch(number, change)),
        }
    }

    /// Lists all batches, and checks their statuses.
    pub(in crate::spec) async fn list_batches(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let limit = NonZeroU32::new(100).expect("not zero");
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(
                    async move { batches(&*queue).list_batches(None, limit).await },
                )
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(listed) => self.reference.batches_seen(&listed),
            // A list without a result needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }

    /// Seals all batches, so that each of them completes.
    pub(in crate::spec) async fn seal_all(&mut self) -> CheckResult {
        let numbers: Vec<_> = self.reference.batches.keys().copied().collect();
        for number in numbers {
            self.batch(Who::Nobody, None, (number, BatchWord::Seal)).await?;
            self.look().await?;
        }
        Ok(())
    }
}

fn change(word: BatchWord) -> BatchChange {
    match word {
        BatchWord::Read | BatchWord::Wait => BatchChange::Nothing,
        BatchWord::Seal => BatchChange::Seal,
        BatchWord::Cancel => BatchChange::Cancel,
        BatchWord::Alter(options) => {
            let (priority, limit): (BatchPriority, _) = draft::batch(options);
            BatchChange::Alter(priority, limit)
        }
    }
}

pub(super) fn batches(queue: &dyn Queue) -> &dyn BatchQueue {
    queue.batch_queue().expect("only backends with batches get calls on batches")
}

/// The answer of a push, or the refusal of one of its jobs to follow another, which no fault
/// causes (R30).
pub(super) fn or_cannot_follow(
    added: Result<Added, Error>,
) -> Result<Result<Added, (JobId, CannotFollow)>, Error> {
    match added {
        Err(Error::CannotFollow { leader, why, .. }) => Ok(Err((leader, why))),
        added => added.map(Ok),
    }
}
