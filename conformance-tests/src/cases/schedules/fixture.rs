//! Helpers and assertions for the cases of schedules.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    NewJob,
    environment::Timestamp,
    outcome::Pushed,
    schedule::{
        Schedule, ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked,
    },
};

use crate::harness::actor::Actor;

/// The name of the schedule of a case that has only one.
pub(super) const REPORT: &str = "report";

pub(super) const HOURLY: &[u8] = b"hourly";
pub(super) const DAILY: &[u8] = b"daily";

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn name(text: &str) -> ScheduleName {
    ScheduleName::new(text).expect("cases use valid names of schedules")
}

/// The tick of the schedule [`REPORT`] with that definition.
pub(super) fn tick(definition: &'static [u8], at: Timestamp) -> Tick {
    tick_of(REPORT, definition, at)
}

/// The tick of the schedule named `of`.
pub(super) fn tick_of(of: &str, definition: &'static [u8], at: Timestamp) -> Tick {
    Tick { name: name(of), definition: Bytes::from_static(definition), at }
}

impl Actor {
    /// Returns the queue's schedule calls. Panics if the backend has no schedules.
    pub(super) fn scheduler(&self) -> &dyn ScheduleQueue {
        self.schedule_queue().expect("the backend supports schedules")
    }

    /// Stores a schedule. Returns whether it is new.
    pub(super) async fn put(&self, of: &str, definition: &[u8]) -> ScheduleStored {
        let stored = self.scheduler().put_schedule(&name(of), definition).await;
        stored.expect("the call is answered")
    }

    /// Stores the schedule [`REPORT`] with the definition [`HOURLY`], asserts that it is
    /// new, and returns the time when it was stored.
    pub(super) async fn put_report(&self) -> Timestamp {
        assert_eq!(self.put(REPORT, HOURLY).await, ScheduleStored::Created, "R28");
        self.report().await.last_tick
    }

    /// Removes a schedule. Returns whether there was one.
    pub(super) async fn remove(&self, of: &str) -> bool {
        let removed = self.scheduler().remove_schedule(&name(of)).await;
        removed.expect("the call is answered")
    }

    /// Lists the schedules, and asserts that they are in the order of their names.
    pub(super) async fn found(&self) -> Schedules {
        let found = self.scheduler().schedules().await.expect("the call is answered");
        let names: Vec<_> = found.schedules.iter().map(|one| &one.name).collect();
        let is_in_order = names.is_sorted_by(|one, next| one < next);
        assert!(is_in_order, "R28: the order of the names: {names:?}");
        found
    }

    /// Returns the schedule [`REPORT`], which must be the queue's only one.
    pub(super) async fn report(&self) -> Schedule {
        let mut found = self.found().await.schedules;
        assert_eq!(found.len(), 1, "R28: one schedule is stored: {found:?}");
        let only = found.remove(0);
        assert_eq!(only.name, name(REPORT), "R28: the name of the schedule");
        only
    }

    /// Pushes the job of a tick.
    pub(super) async fn tick(&self, tick: &Tick, job: impl Into<NewJob>) -> Ticked {
        let ticked = self.scheduler().push_tick(tick, job.into()).await;
        ticked.expect("the call is answered")
    }

    /// Pushes the job of a tick. Asserts that it was stored and that the tick is
    /// recorded.
    pub(super) async fn ticks(&self, tick: &Tick, job: impl Into<NewJob>) {
        let ticked = self.tick(tick, job).await;
        assert_stored(&ticked);
        assert_eq!(self.last_tick(&tick.name).await, tick.at, "R28: the last tick");
    }

    /// Returns the last tick of a schedule, which must exist.
    pub(super) async fn last_tick(&self, of: &ScheduleName) -> Timestamp {
        let found = self.found().await.schedules;
        let found = found.into_iter().find(|schedule| schedule.name == *of);
        found.unwrap_or_else(|| panic!("R28: there is no schedule {of}")).last_tick
    }
}

/// Asserts that the job of a tick was stored.
#[track_caller]
pub(super) fn assert_stored(ticked: &Ticked) {
    let is_stored = matches!(ticked, Ticked::Pushed(Pushed::Stored(_)));
    assert!(is_stored, "R28: the job of a due tick was not stored: {ticked:?}");
}

/// How many of the calls pushed the job of their tick.
pub(super) fn pushed(ticked: &[Ticked]) -> usize {
    ticked.iter().filter(|one| matches!(one, Ticked::Pushed(_))).count()
}
