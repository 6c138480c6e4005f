//! The operations on schedules of a running sequence.

use relq_core::{
    Queue,
    schedule::{ScheduleQueue, Tick},
};

use super::super::{
    actors::Observed,
    draft,
    operation::{Act, Draft, InjectedFault, TickTime, Who},
    reference::CheckResult,
    runner::{CallEffect, Runner},
    scheduling::{TickOf, push_of},
};

impl Runner {
    /// Makes a call on schedules, if the backend has them.
    pub(in crate::spec) async fn schedule(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        act: &Act,
    ) -> CheckResult {
        if !self.reference.class.has_schedules() {
            return Ok(());
        }
        match act {
            Act::PutSchedule { schedule, definition } => {
                self.put_schedule(who, fault, (*schedule, *definition)).await
            }
            Act::RemoveSchedule { schedule } => {
                self.remove_schedule(who, fault, *schedule).await
            }
            Act::Tick { schedule, definition, at, job } => {
                self.tick(who, fault, (*schedule, *definition, *at), job).await
            }
            _ => self.list_schedules(who, fault).await,
        }
    }

    pub(in crate::spec) async fn put_schedule(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (number, definition): (u8, u8),
    ) -> CheckResult {
        let (name, text) = (draft::schedule(number), draft::definition(definition));
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(
                    async move { scheduler(&*queue).put_schedule(&name, &text).await },
                )
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(answer) => {
                self.reference.schedule_put(number, definition, answer)
            }
            other => {
                self.unanswered(&other, &CallEffect::PutSchedule(number, definition))
            }
        }
    }

    pub(in crate::spec) async fn remove_schedule(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        number: u8,
    ) -> CheckResult {
        let name = draft::schedule(number);
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { scheduler(&*queue).remove_schedule(&name).await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(was) => self.reference.schedule_removed(number, was),
            other => self.unanswered(&other, &CallEffect::RemoveSchedule(number)),
        }
    }

    pub(in crate::spec) async fn tick(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
        (schedule, definition, at): (u8, u8, TickTime),
        drafted: &Draft,
    ) -> CheckResult {
        let at = at.since_start(self.reference.now);
        self.payloads += 1;
        let payload = format!("job {}", self.payloads);
        let job = draft::ticked(drafted, payload, &self.reference.class);
        let sent = Tick {
            name: draft::schedule(schedule),
            definition: draft::definition(definition),
            at: self.actors.time_at(at),
        };
        let push = push_of(job.clone());
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { scheduler(&*queue).push_tick(&sent, job).await })
            })
            .await?;
        let tick = TickOf { schedule, definition, at };
        match ended.observed_answer()? {
            Observed::Answer(answer) => self.reference.ticked(tick, &push, &answer),
            other => self.unanswered(&other, &CallEffect::Tick(tick, push)),
        }
    }

    /// Lists all schedules, and checks the list.
    pub(in crate::spec) async fn list_schedules(
        &mut self,
        who: Who,
        fault: Option<InjectedFault>,
    ) -> CheckResult {
        let ended = self
            .actors
            .call(who, fault, |queue| {
                Box::pin(async move { scheduler(&*queue).schedules().await })
            })
            .await?;
        match ended.observed_answer()? {
            Observed::Answer(found) => self.reference.schedules_seen(&found),
            // A list without a result needs no record, because it changes nothing.
            _ => Ok(()),
        }
    }
}

fn scheduler(queue: &dyn Queue) -> &dyn ScheduleQueue {
    queue.schedule_queue().expect("only backends with schedules get calls on them")
}
