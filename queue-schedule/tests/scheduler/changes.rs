//! Schedules that are changed or removed while schedulers run the old ones.

use relq_schedule::{Missed, ScheduleQueue, ScheduleStored};

use crate::{
    meddled::Meddling,
    world::{World, cron, every, hours, name, seconds, ticks},
};

const START: &str = "2027-01-01T00:00:05Z";

#[tokio::test]
async fn a_changed_schedule_ticks_by_its_new_times_only() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.start_many(2).await;
    world.advance(seconds(115)).await;
    let new = every(seconds(45), Missed::All);

    assert_eq!(world.put("poll", &new).await, ScheduleStored::Replaced);
    world.advance(seconds(120)).await;

    let mut expected =
        vec!["2027-01-01T00:01:00Z".to_owned(), "2027-01-01T00:02:00Z".into()];
    expected.extend(ticks(&new, "2027-01-01T00:02:00Z", "2027-01-01T00:04:00Z"));
    assert_eq!(world.pushed("poll").await, expected);
}

/// The change arrives between the read of a scheduler and its push.
#[tokio::test]
async fn a_tick_of_an_old_definition_is_not_pushed() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.start_many(2).await;
    let new = every(seconds(3600), Missed::All);
    world.queue.meddle(Meddling::Change(new.to_definition()));

    world.advance(hours(1)).await;

    assert_eq!(world.pushed("poll").await, ["2027-01-01T01:00:00Z"]);
}

/// The scheduler that meets the change reads the schedules again at once.
#[tokio::test]
async fn a_change_that_a_push_meets_is_known_at_once() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.start_many(1).await;
    let new = every(seconds(2), Missed::Skip);
    world.queue.meddle(Meddling::Change(new.to_definition()));

    world.advance(seconds(75)).await;

    let expected = ticks(&new, "2027-01-01T00:01:00Z", "2027-01-01T00:01:20Z");
    assert_eq!(world.pushed("poll").await, expected);
    for job in world.jobs().await {
        assert_eq!(job.enqueued_at, relq_schedule::scheduled_for(&job.headers));
    }
}

#[tokio::test]
async fn a_removed_schedule_ticks_no_more() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.put("stays", &every(seconds(60), Missed::All)).await;
    world.start_many(2).await;
    world.advance(seconds(60)).await;

    world.remove("poll").await;
    world.advance(seconds(60)).await;

    assert_eq!(world.pushed("poll").await, ["2027-01-01T00:01:00Z"]);
    assert_eq!(world.pushed("stays").await.len(), 2);
}

/// The removal arrives between the read of a scheduler and its push.
#[tokio::test]
async fn a_tick_of_a_removed_schedule_is_not_pushed() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.start_many(2).await;
    world.queue.meddle(Meddling::Remove);

    world.advance(hours(1)).await;

    assert_eq!(world.pushed("poll").await, Vec::<String>::new());
}

/// A schedule that comes back begins anew: it does not make up for its absence.
#[tokio::test]
async fn a_schedule_that_is_stored_again_begins_at_the_present() {
    let mut world = World::starting(START);
    let spec = every(seconds(60), Missed::All);
    world.put("poll", &spec).await;
    world.start_many(1).await;
    world.remove("poll").await;
    world.advance(seconds(600)).await;

    assert_eq!(world.put("poll", &spec).await, ScheduleStored::Created);
    world.advance(seconds(60)).await;

    assert_eq!(world.pushed("poll").await, ["2027-01-01T00:11:00Z"]);
}

/// An old scheduler meets the definition of a newer one.
#[tokio::test]
async fn a_definition_of_a_newer_version_is_left_alone() {
    let mut world = World::starting(START);
    let newer = br#"{"version":3,"cron":"* * * * *","zone":"UTC"}"#;
    let queue = &world.queue.inner;
    queue.put_schedule(&name("newer"), newer).await.unwrap();
    queue.put_schedule(&name("noise"), b"\xff").await.unwrap();
    world.put("known", &cron("*/10 * * * *", "UTC")).await;
    world.start_many(2).await;

    world.advance(hours(1)).await;

    assert_eq!(world.jobs().await.len(), 6);
    assert_eq!(world.pushed("known").await.len(), 6);
    let found = world.queue.schedules().await.unwrap();
    assert_eq!(found.schedules[1].definition[..], newer[..]);
}

/// R28: a schedule that is replaced after the store's clock was set back pushes no tick
/// again.
#[tokio::test]
async fn a_schedule_that_is_replaced_after_the_clock_was_set_back_pushes_no_tick_again()
{
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::All)).await;
    world.start_many(1).await;
    world.advance(seconds(600)).await;
    world.stop_all().await;
    world.clock.set(seconds(0));

    let new = every(seconds(120), Missed::All);
    assert_eq!(world.put("poll", &new).await, ScheduleStored::Replaced);
    world.start_many(1).await;
    world.advance(seconds(720)).await;

    let pushed = world.pushed("poll").await;
    assert_eq!(pushed.len(), 11, "{pushed:?}");
    assert!(pushed.is_sorted_by(|one, next| one < next), "{pushed:?}");
}
