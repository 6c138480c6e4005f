//! Ticks that were missed while no scheduler ran are pushed or left out.

use std::sync::Arc;

use relq_schedule::{MAX_MISSED, MAX_TICKS, Missed};

use crate::{
    meddled::Meddling,
    world::{World, cron, every, hours, seconds, ticks},
};

const START: &str = "2027-01-01T00:10:00Z";

/// The ticks that two schedulers push in the hour after an outage.
async fn pushed_after_an_outage(missed: Missed) -> Vec<String> {
    let mut world = World::starting(START);
    world.put("hourly", &every(hours(1), missed)).await;
    world.start_many(2).await;
    world.advance(hours(1)).await;
    world.stop_all().await;
    world.advance(hours(4)).await;

    world.start_many(2).await;
    world.advance(hours(1)).await;

    world.pushed("hourly").await
}

#[tokio::test]
async fn missed_ticks_are_skipped() {
    let pushed = pushed_after_an_outage(Missed::Skip).await;
    assert_eq!(pushed, ["2027-01-01T01:00:00Z", "2027-01-01T06:00:00Z"]);
}

#[tokio::test]
async fn the_last_missed_tick_is_pushed() {
    let pushed = pushed_after_an_outage(Missed::Last).await;
    assert_eq!(
        pushed,
        ["2027-01-01T01:00:00Z", "2027-01-01T05:00:00Z", "2027-01-01T06:00:00Z"]
    );
}

#[tokio::test]
async fn all_missed_ticks_are_pushed_in_order() {
    let pushed = pushed_after_an_outage(Missed::All).await;
    let hourly = every(hours(1), Missed::All);
    assert_eq!(pushed, ticks(&hourly, START, "2027-01-01T06:10:00Z"));
    assert_eq!(pushed.len(), 6);
}

/// The ticks that a scheduler pushes after a suspend of almost an hour, which begins shortly
/// before a tick and ends more than a minute after another one.
async fn pushed_after_a_suspend(missed: Missed) -> Vec<String> {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(100), missed)).await;
    world.start_many(1).await;
    world.advance(seconds(95)).await;

    world.clock.set_forward(hours(1) - seconds(20));
    world.advance(seconds(10)).await;

    world.pushed("poll").await
}

/// R18: the steady clock stands still during a suspend. By that clock the first tick of the
/// suspend is on time after its end, although it was missed.
#[tokio::test]
async fn ticks_that_are_missed_during_a_suspend_are_skipped() {
    assert_eq!(pushed_after_a_suspend(Missed::Skip).await, [""; 0]);
}

/// One job makes up for all ticks of a suspend, including the first one.
#[tokio::test]
async fn the_last_tick_that_is_missed_during_a_suspend_is_pushed() {
    let pushed = pushed_after_a_suspend(Missed::Last).await;
    assert_eq!(pushed, ["2027-01-01T01:10:00Z"]);
}

/// Each look pushes a page of the newest ones, so that the other schedules are served.
#[tokio::test]
async fn thousands_of_missed_ticks_do_not_hold_up_other_schedules() {
    let mut world = World::starting(START);
    let often = every(seconds(1), Missed::All);
    world.put("often", &often).await;
    world.put("z-hourly", &every(hours(1), Missed::Last)).await;
    world.advance(hours(1)).await;

    world.start_many(3).await;
    world.advance(seconds(1)).await;

    let pushed = world.pushed("often").await;
    assert_eq!(pushed, ticks(&often, "2027-01-01T00:53:20Z", "2027-01-01T01:10:01Z"));
    assert_eq!(pushed.len(), MAX_MISSED + 1);
    let jobs = world.jobs().await;
    let place = jobs.iter().position(|job| &job.payload[..] == b"every 3600s");
    assert!(place.unwrap() <= 3 * MAX_TICKS, "{place:?}");
}

/// A short outage loses nothing: a tick is missed only after a minute.
#[tokio::test]
async fn late_ticks_of_a_short_outage_are_pushed_by_every_policy() {
    for missed in [Missed::Skip, Missed::Last, Missed::All] {
        let mut world = World::starting(START);
        let often = every(seconds(10), missed);
        world.put("often", &often).await;
        world.start_many(1).await;
        world.stop_all().await;
        world.advance(seconds(60)).await;

        world.start_many(2).await;

        let expected = ticks(&often, START, "2027-01-01T00:11:00Z");
        assert_eq!(world.pushed("often").await, expected, "{missed}");
    }
}

/// After an outage of a year one job makes up for all, and a scheduler finds it at once.
#[tokio::test]
async fn an_outage_of_a_year_costs_one_job() {
    let mut world = World::starting(START);
    world.put("each-minute", &cron("* 2 * * *", "Europe/Berlin")).await;
    world.advance(hours(24 * 365)).await;

    world.start_many(2).await;

    assert_eq!(world.pushed("each-minute").await, ["2027-12-31T01:59:00Z"]);
}

/// A schedule that ticks each second is not worth 31 million jobs.
#[tokio::test]
async fn of_a_year_only_the_newest_ticks_are_pushed() {
    let mut world = World::starting(START);
    let often = every(seconds(1), Missed::All);
    world.put("often", &often).await;
    world.advance(hours(24 * 365)).await;

    world.start_many(2).await;

    let pushed = world.pushed("often").await;
    let expected = ticks(&often, "2027-12-31T23:53:20Z", "2028-01-01T00:10:00Z");
    assert_eq!(pushed, expected);
    assert_eq!(pushed.len(), MAX_MISSED);
}

/// R28: a tick that was due when the schedulers looked is on time, also if the turns of
/// other schedules take minutes.
#[tokio::test]
async fn a_slow_store_makes_no_tick_a_missed_one() {
    let mut world = World::starting(START);
    for name in ["one", "two"] {
        world.put(name, &every(hours(1), Missed::Skip)).await;
    }
    world.start_many(1).await;
    let slow = Meddling::Slow(Arc::clone(&world.clock), seconds(90));
    world.queue.meddle(slow);

    world.advance(hours(1)).await;

    for name in ["one", "two"] {
        assert_eq!(world.pushed(name).await, ["2027-01-01T01:00:00Z"], "{name}");
    }
}
