//! R28: each tick is pushed once, at its time, by one of any number of schedulers.

use std::num::NonZeroU16;

use relq_core::{
    NewJob, Priority,
    operator::{JobState, PeekRequest},
    unique::UniqueKey,
};
use relq_schedule::{
    Every, Missed, SCHEDULE_HEADER, SCHEDULED_FOR_HEADER, ScheduleSpec, ScheduleStored,
    scheduled_for,
};

use crate::world::{World, cron, every, hours, name, seconds, ticks};

const START: &str = "2027-01-01T00:00:07Z";
const HOUR_LATER: &str = "2027-01-01T01:00:07Z";

async fn each_tick_is_pushed_once_by(schedulers: usize) {
    let mut world = World::starting(START);
    let (often, seldom) =
        (every(seconds(10), Missed::Last), cron("*/7 * * * *", "UTC"));
    world.put("often", &often).await;
    world.put("seldom", &seldom).await;
    world.start_many(schedulers).await;

    world.advance(hours(1)).await;

    let expected = [&often, &seldom].map(|spec| ticks(spec, START, HOUR_LATER));
    assert_eq!((expected[0].len(), expected[1].len()), (360, 9));
    assert_eq!(world.pushed("often").await, expected[0]);
    assert_eq!(world.pushed("seldom").await, expected[1]);
    let summary = world.summary();
    assert_eq!((summary.pushed, summary.failed_calls), (369, 0));
    // All of them tried: the clients ran between each other's calls.
    assert_eq!(summary.of_others > 0, schedulers > 1, "{summary:?}");
}

#[tokio::test]
async fn one_scheduler_pushes_each_tick_once() {
    each_tick_is_pushed_once_by(1).await;
}

#[tokio::test]
async fn two_schedulers_push_each_tick_once() {
    each_tick_is_pushed_once_by(2).await;
}

#[tokio::test]
async fn three_schedulers_push_each_tick_once() {
    each_tick_is_pushed_once_by(3).await;
}

#[tokio::test]
async fn a_tick_is_pushed_at_its_time() {
    let mut world = World::starting(START);
    world.put("often", &every(seconds(10), Missed::Last)).await;
    world.start_many(2).await;

    world.advance(hours(1)).await;

    for job in world.jobs().await {
        assert_eq!(job.enqueued_at, scheduled_for(&job.headers));
    }
}

/// The store is read again long before the next known tick.
#[tokio::test]
async fn a_new_schedule_beside_a_seldom_one_ticks_soon() {
    let mut world = World::starting(START);
    world.put("seldom", &every(hours(24), Missed::Last)).await;
    world.start_many(1).await;
    world.put("often", &every(seconds(10), Missed::All)).await;

    world.advance(seconds(60)).await;

    assert_eq!(world.pushed("often").await.len(), 6);
}

#[tokio::test]
async fn a_job_has_the_options_of_its_schedule_and_the_headers_of_its_tick() {
    let mut world = World::starting(START);
    let job = NewJob::new("poll")
        .priority(Priority::HIGHEST)
        .max_attempts(NonZeroU16::new(3).unwrap())
        .keep_result(seconds(600))
        .header("kind", "poll")
        .header(SCHEDULE_HEADER, "of the template")
        .delay(seconds(5));
    let spec = ScheduleSpec::new(Every::new(seconds(60)).unwrap(), job).unwrap();
    world.put("poll-a", &spec).await;
    world.start_many(1).await;

    world.advance(seconds(54)).await;

    let ask = PeekRequest::new(JobState::Scheduled, 10.try_into().unwrap());
    let jobs = relq_core::Operator::peek(&world.queue.inner, &ask).await.unwrap().jobs;
    let [job] = &*jobs else { panic!("one job, not {jobs:?}") };
    assert_eq!((job.priority, job.max_attempts.get()), (Priority::HIGHEST, 3));
    assert_eq!(job.keep_result, Some(seconds(600)));
    let headers: Vec<_> = job.headers.iter().collect();
    assert_eq!(
        headers,
        [
            ("kind", "poll"),
            (SCHEDULE_HEADER, "poll-a"),
            (SCHEDULED_FOR_HEADER, "2027-01-01T00:01:00Z"),
        ]
    );
}

/// R16: the tick of an unfinished job's key is recorded, and nothing is stored.
#[tokio::test]
async fn a_unique_key_lets_one_job_run_at_a_time() {
    let mut world = World::starting(START);
    let job = NewJob::new("slow").unique(UniqueKey::new("slow").unwrap());
    let spec = ScheduleSpec::new(Every::new(seconds(60)).unwrap(), job).unwrap();
    world.put("slow", &spec).await;
    world.start_many(2).await;

    world.advance(seconds(300)).await;

    assert_eq!(world.pushed("slow").await, ["2027-01-01T00:01:00Z"]);
    let summary = world.summary();
    assert_eq!((summary.pushed, summary.duplicates), (1, 4));
}

/// A nightly job runs once on both days on which the clocks of its zone change.
#[tokio::test]
async fn a_nightly_job_is_pushed_once_on_the_days_of_the_change() {
    for (day, zone, pushed) in [
        ("2027-03-27T12:00:00Z", "Europe/Berlin", "2027-03-28T01:00:00Z"),
        ("2027-10-30T12:00:00Z", "Europe/Berlin", "2027-10-31T00:30:00Z"),
        ("2027-03-13T12:00:00Z", "America/New_York", "2027-03-14T07:00:00Z"),
        ("2027-11-06T12:00:00Z", "America/New_York", "2027-11-07T07:30:00Z"),
    ] {
        let mut world = World::starting(day);
        world.put("nightly", &cron("30 2 * * *", zone)).await;
        world.start_many(2).await;

        world.advance(hours(24)).await;

        assert_eq!(world.pushed("nightly").await, [pushed], "{zone} after {day}");
    }
}

/// Every replica stores the schedules of the application at its start, all of them.
#[tokio::test]
async fn replicas_store_the_same_schedules() {
    let mut world = World::starting(START);
    let specs = [("poll", 60), ("sweep", 45), ("report", 90)]
        .map(|(name, interval)| (name, every(seconds(interval), Missed::All)));
    for _ in 0..3 {
        let mut scheduler = world.scheduler();
        for (as_name, spec) in &specs {
            scheduler = scheduler.schedule(name(as_name), spec.clone());
        }
        world.start(scheduler).await;
        world.advance(seconds(100)).await;
    }

    let until = "2027-01-01T00:05:07Z";
    for (name, spec) in &specs {
        let pushed = world.pushed(name).await;
        assert_eq!(pushed, ticks(spec, START, until), "R28: the ticks of {name}");
        assert_eq!(world.put(name, spec).await, ScheduleStored::Unchanged, "{name}");
    }
}

/// The application sets the time within which a new schedule is known.
#[tokio::test]
async fn a_new_schedule_is_known_within_the_time_that_was_set() {
    let mut world = World::starting(START);
    let scheduler = world.scheduler().look_every(seconds(2));
    world.start(scheduler).await;
    world.advance(seconds(10)).await;
    let spec = every(seconds(1), Missed::Skip);
    world.put("new", &spec).await;

    world.advance(seconds(3)).await;

    let expected = ticks(&spec, "2027-01-01T00:00:17Z", "2027-01-01T00:00:20Z");
    let pushed = world.pushed("new").await;
    assert_eq!(pushed, expected, "the schedules are read every 2 seconds");
}

/// A schedule that is stored while schedulers run is known within the look interval.
#[tokio::test]
async fn a_new_schedule_ticks_from_its_first_tick_on() {
    let mut world = World::starting(START);
    world.start_many(2).await;
    world.advance(seconds(10)).await;
    let spec = every(seconds(5), Missed::Skip);
    world.put("new", &spec).await;

    world.advance(seconds(50)).await;

    let expected = ticks(&spec, "2027-01-01T00:00:17Z", "2027-01-01T00:01:07Z");
    assert_eq!(world.pushed("new").await, expected);
}

#[tokio::test]
async fn a_queue_without_schedules_stays_empty() {
    let mut world = World::starting(START);
    world.start_many(2).await;
    world.advance(hours(1)).await;
    assert_eq!(world.jobs().await.len(), 0);
}
