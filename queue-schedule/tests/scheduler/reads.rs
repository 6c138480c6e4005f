//! How often schedulers read the store, and how they share the ticks of a moment.

use relq_schedule::{Missed, SCHEDULE_HEADER};

use crate::{
    meddled::Meddling,
    world::{World, every, hours, seconds, ticks},
};

const START: &str = "2027-01-01T00:00:05Z";

/// A scheduler reads all schedules every 30 seconds, and every 5 seconds while ticks are due,
/// but not for each tick.
#[tokio::test]
async fn ticks_between_two_reads_are_pushed_without_a_read() {
    let mut world = World::starting(START);
    let often = every(seconds(1), Missed::Last);
    world.put("often", &often).await;
    world.start_many(1).await;

    world.advance(hours(1)).await;

    let pushed = world.pushed("often").await;
    assert_eq!(pushed, ticks(&often, START, "2027-01-01T01:00:05Z"));
    for job in world.jobs().await {
        assert_eq!(job.enqueued_at, relq_schedule::scheduled_for(&job.headers));
    }
    assert_eq!(world.queue.reads(), 721);
}

/// After a failure it reads them again: it does not know what the failed call did.
#[tokio::test]
async fn a_failed_push_is_followed_by_a_read() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(8), Missed::Last)).await;
    world.start_many(1).await;
    let before = world.queue.reads();
    world.queue.meddle(Meddling::LoseReply);

    world.advance(seconds(6)).await;

    assert_eq!(world.queue.reads(), before + 1);
    assert_eq!(world.pushed("poll").await, ["2027-01-01T00:00:08Z"]);
}

/// Schedulers that begin with the same schedule would all call for each tick, and all
/// but one in vain.
#[tokio::test]
async fn a_scheduler_begins_with_any_schedule() {
    let mut world = World::starting(START);
    for name in ["a", "b", "c"] {
        world.put(name, &every(seconds(60), Missed::Last)).await;
    }
    world.start_many(1).await;

    world.advance(hours(2)).await;

    let jobs = world.jobs().await;
    let first = |name: &str| {
        let firsts = jobs.iter().step_by(3);
        firsts.filter(|job| job.headers.get(SCHEDULE_HEADER) == Some(name)).count()
    };
    assert_eq!(jobs.len(), 360);
    assert!(["a", "b", "c"].map(first).iter().all(|count| *count > 0));
}
