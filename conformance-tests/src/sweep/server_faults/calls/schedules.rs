//! Makes every kind of call that changes a schedule, on a queue that holds no job.

use std::{sync::Arc, time::Duration};

use relq_core::{
    NewJob, Queue,
    schedule::{Schedule, ScheduleName, ScheduleQueue, Tick, Ticked},
};

use super::super::{
    fixture::{eventually, with_options},
    tape::Tape,
};

pub(super) async fn play(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let scheduler = scheduler(&*queue);
    let name = ScheduleName::new("report").expect("a valid name");
    for definition in ["hourly", "daily"] {
        let stored = scheduler.put_schedule(&name, definition.as_bytes()).await;
        stored.expect("stored");
        tape.mark("put schedule").await;
    }
    for job in [NewJob::new("ticked")].into_iter().chain(with_options(&*queue)) {
        push_tick(scheduler, job).await;
        tape.mark("push of a tick").await;
    }
    queue.purge().await.expect("purged");
    tape.mark("purge beside a schedule").await;
    scheduler.remove_schedule(&name).await.expect("removed");
    tape.mark("remove schedule").await;
}

/// Pushes the job of the schedule's next tick, as soon as the tick is due.
async fn push_tick(scheduler: &dyn ScheduleQueue, job: NewJob) {
    let found = scheduler.schedules().await.expect("listed").schedules;
    let schedule: &Schedule = found.first().expect("it was stored");
    let next = schedule.last_tick.plus(Duration::from_millis(1));
    let tick = Tick::of(schedule, next);
    eventually("a tick", async || {
        let ticked = scheduler.push_tick(&tick, job.clone()).await.expect("answered");
        matches!(ticked, Ticked::Pushed(_))
    })
    .await;
}

fn scheduler(queue: &dyn Queue) -> &dyn ScheduleQueue {
    queue.schedule_queue().expect("the backend supports schedules")
}
