//! Overrides of the calls on schedules, each with one bug.

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    schedule::{Schedules, Tick, Ticked},
    *,
};

/// Pushes the job of a tick in one call, and records the tick in a second one. The second
/// call finds a duplicate of the job, so it stores none.
pub(crate) struct TicksInTwoCalls;

#[async_trait]
impl Override for TicksInTwoCalls {
    async fn push_tick(
        &self,
        right: &Right,
        tick: &Tick,
        job: NewJob,
    ) -> Result<Ticked, Error> {
        let found = right.scheduler().schedules().await?;
        let known = found.schedules.iter().find(|one| one.name == tick.name);
        let is_next = known.is_some_and(|one| {
            one.definition == tick.definition
                && one.last_tick < tick.at
                && tick.at <= found.now
        });
        if !is_next {
            return right.scheduler().push_tick(tick, job).await;
        }
        let mut number = [0; 8];
        right.environment.random().fill(&mut number);
        let id = JobId::new(format!("tick-{}", u64::from_le_bytes(number)));
        let job = job.id(id.expect("a valid id"));
        let again = job.clone();
        let pushed = right.push(&[job], None).await?.remove(0);
        match right.scheduler().push_tick(tick, again).await? {
            Ticked::Pushed(_) => Ok(Ticked::Pushed(pushed)),
            other => Ok(other),
        }
    }
}

/// Decides by the clock of the scheduler's machine whether a tick is due.
pub(crate) struct TicksByItsClock;

#[async_trait]
impl Override for TicksByItsClock {
    async fn push_tick(
        &self,
        right: &Right,
        tick: &Tick,
        job: NewJob,
    ) -> Result<Ticked, Error> {
        let wait = tick.at.since(right.environment.clock().now());
        if !wait.is_zero() {
            return Ok(Ticked::NotDue(wait));
        }
        right.scheduler().push_tick(tick, job).await
    }
}

/// Lists only as many schedules as one page has.
pub(crate) struct ListsOnePage;

#[async_trait]
impl Override for ListsOnePage {
    async fn schedules(&self, right: &Right) -> Result<Schedules, Error> {
        let mut found = right.scheduler().schedules().await?;
        found.schedules.truncate(128);
        Ok(found)
    }
}
