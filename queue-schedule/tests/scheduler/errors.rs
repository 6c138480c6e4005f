//! A store that fails, a clock that is wrong, and settings that are refused.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use relq_core::{
    Error, NewJob, Priority, ReliableQueue as _,
    capabilities::{Capabilities, Capability, LeaseScope, Order},
    environment::Clock as _,
    unique::UniqueKey,
};
use relq_schedule::{
    DEFAULT_GIVE_UP_AFTER, DEFAULT_LOOK_EVERY, Every, Missed, ScheduleQueue as _,
    ScheduleSpec, Scheduler, SchedulerError,
};
use tokio::sync::oneshot;

use crate::{
    meddled::{Meddling, Refusal},
    world::{World, every, hours, name, seconds, ticks},
};

const START: &str = "2027-01-01T00:00:05Z";

const DENIED: Refusal = |at| Error::Denied { at, source: "the test wants it".into() };
const READ_ONLY: Refusal =
    |at| Error::ReadOnly { at, source: "the test wants it".into() };
const UNUSABLE: Refusal =
    |at| Error::Unusable { at, source: "the test wants it".into() };
const WRONG_SERVER: Refusal =
    |at| Error::WrongServer { at, source: "the test wants it".into() };

/// Runs a scheduler, which is refused from a moment after its start on, until it ends, for
/// at most three hours. Returns how it ended, and when.
async fn end_of_refused(
    world: &World,
    scheduler: Scheduler,
    refusal: Refusal,
) -> (SchedulerError, Duration) {
    let running = tokio::spawn(scheduler.run());
    while !running.is_finished() {
        assert!(world.clock.elapsed() < hours(3), "the scheduler runs on");
        if let Some(next) = world.clock.sleeps().into_iter().min() {
            world.queue.refuse(Some(refusal));
            world.clock.set(next);
        }
        tokio::task::yield_now().await;
    }
    (running.await.unwrap().unwrap_err(), world.clock.elapsed())
}

/// R21: only a restart may help a scheduler whose store refuses it, for example with a new
/// password. It ends as a worker does, so that its supervisor starts it again.
#[tokio::test]
async fn a_store_that_refuses_all_calls_for_a_minute_ends_the_scheduler() {
    for refusal in [DENIED, READ_ONLY, UNUSABLE] {
        let world = World::starting(START);

        let (error, ended) = end_of_refused(&world, world.scheduler(), refusal).await;

        assert_refused_for(DEFAULT_GIVE_UP_AFTER, &error, ended);
    }
}

/// A person may need longer than a minute, for example for a fail-over by hand.
#[tokio::test]
async fn a_scheduler_continues_for_the_time_that_is_set() {
    let world = World::starting(START);
    let scheduler = world.scheduler().give_up_after(hours(2));

    let (error, ended) = end_of_refused(&world, scheduler, READ_ONLY).await;

    assert_refused_for(hours(2), &error, ended);
}

/// Asserts that the store refused a scheduler for this time. Its second look was refused
/// first, and its pauses take at most 5 seconds.
#[track_caller]
fn assert_refused_for(time: Duration, error: &SchedulerError, ended: Duration) {
    assert!(matches!(error, SchedulerError::Store(_)), "{error:?}");
    let refused_for = ended - DEFAULT_LOOK_EVERY;
    let expected = time..=time + seconds(5);
    assert!(expected.contains(&refused_for), "{refused_for:?}: {error:?}");
}

/// R21: nothing of the server can be repaired, so that to wait would only delay the end.
#[tokio::test]
async fn a_server_of_the_wrong_kind_ends_the_scheduler_at_once() {
    let world = World::starting(START);
    let (error, ended) = end_of_refused(&world, world.scheduler(), WRONG_SERVER).await;

    assert!(matches!(error, SchedulerError::Store(_)), "{error:?}");
    assert_eq!(ended, DEFAULT_LOOK_EVERY);
}

/// The first call shows that a password or a store is wrong, whether the scheduler reads
/// or stores schedules. An operator should see that at once.
#[tokio::test]
async fn a_refusal_of_the_first_call_ends_the_scheduler_at_once() {
    for refusal in [DENIED, UNUSABLE] {
        let world = World::starting(START);
        world.queue.refuse(Some(refusal));
        let poll = every(seconds(60), Missed::Skip);
        let storing = world.scheduler().schedule(name("poll"), poll);
        for scheduler in [world.scheduler(), storing] {
            let (error, ended) = end_of_refused(&world, scheduler, refusal).await;

            assert!(matches!(error, SchedulerError::Store(_)), "{error:?}");
            assert_eq!(ended, Duration::ZERO, "{error:?}");
        }
    }
}

/// A stored schedule shows that the store has worked, also if too few replicas confirm it. So a
/// person has a minute to repair a later refusal.
#[tokio::test]
async fn a_refusal_after_a_schedule_is_stored_does_not_end_the_scheduler_at_once() {
    for is_unconfirmed in [false, true] {
        let world = World::starting(START);
        world.queue.leaves_puts_unconfirmed.store(is_unconfirmed, Relaxed);
        *world.queue.failing_reads.lock().unwrap() = 2;
        let poll = every(hours(1), Missed::Skip);
        let scheduler = world.scheduler().schedule(name("poll"), poll);

        let (error, ended) = end_of_refused(&world, scheduler, DENIED).await;

        assert!(matches!(error, SchedulerError::Store(_)), "{error:?}");
        assert!(ended >= DEFAULT_GIVE_UP_AFTER, "{is_unconfirmed}: {ended:?}");
    }
}

/// A person who repairs the store twice has a minute each time.
#[tokio::test]
async fn refusals_that_are_repaired_in_time_do_not_end_the_scheduler() {
    let mut world = World::starting(START);
    let spec = every(seconds(60), Missed::Last);
    world.put("poll", &spec).await;
    world.start_many(1).await;

    for _ in 0..2 {
        world.queue.refuse(Some(DENIED));
        world.advance(seconds(50)).await;
        world.queue.refuse(None);
        world.advance(seconds(10)).await;
    }

    assert!(world.summary().failed_calls > 2);
    let expected = ticks(&spec, START, "2027-01-01T00:02:05Z");
    assert_eq!(world.pushed("poll").await, expected);
}

#[tokio::test]
async fn a_store_that_cannot_be_read_is_tried_until_it_works() {
    let mut world = World::starting(START);
    let spec = every(seconds(20), Missed::Skip);
    world.put("poll", &spec).await;
    *world.queue.failing_reads.lock().unwrap() = 8;
    world.start_many(1).await;

    world.advance(seconds(120)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:02:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    assert_eq!(world.summary().failed_calls, 7);
}

/// A scheduler that starts while the store is down does not end: it stores its schedules when
/// the store is back.
#[tokio::test]
async fn a_schedule_that_cannot_be_stored_is_tried_until_the_store_works() {
    let mut world = World::starting(START);
    *world.queue.failing_puts.lock().unwrap() = 3;
    let spec = every(seconds(20), Missed::Skip);
    let scheduler = world.scheduler().schedule(name("poll"), spec.clone());
    world.start(scheduler).await;

    world.advance(seconds(120)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:02:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    assert_eq!(world.summary().failed_calls, 3);
}

#[tokio::test]
async fn a_push_that_failed_is_made_again() {
    let mut world = World::starting(START);
    let spec = every(seconds(60), Missed::Skip);
    world.put("poll", &spec).await;
    world.start_many(1).await;
    (0..3).for_each(|_| world.queue.meddle(Meddling::Fail));

    world.advance(seconds(120)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:02:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    let summary = world.summary();
    assert_eq!((summary.pushed, summary.failed_calls), (2, 3));
}

/// R28: the call may be repeated after an error whose effect is unknown.
#[tokio::test]
async fn a_push_whose_reply_is_lost_is_not_doubled() {
    let mut world = World::starting(START);
    let spec = every(seconds(60), Missed::All);
    world.put("poll", &spec).await;
    world.start_many(2).await;
    (0..3).for_each(|_| world.queue.meddle(Meddling::LoseReply));

    world.advance(seconds(240)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:04:05Z");
    assert_eq!(world.pushed("poll").await, expected);
}

#[tokio::test]
async fn a_job_that_the_store_refuses_does_not_hold_up_other_schedules() {
    let mut world = World::starting(START);
    let refused = NewJob::new("refused");
    let refused = ScheduleSpec::new(Every::new(seconds(10)).unwrap(), refused).unwrap();
    world.put("a-refused", &refused).await;
    let poll = every(seconds(10), Missed::Skip);
    world.put("poll", &poll).await;
    world.start_many(2).await;

    world.advance(seconds(300)).await;

    let expected = ticks(&poll, START, "2027-01-01T00:05:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    assert!(world.summary().failed_calls > 0);
}

/// The records of one schedule's jobs may be damaged in the store, for example the holder
/// of their unique key.
#[tokio::test]
async fn an_error_of_one_schedule_does_not_hold_up_the_others() {
    a_schedule_ticks_in_time_beside(["damaged", "unreadable"]).await;
}

/// Another process may have stored a schedule whose job has an option that the backend lacks.
#[tokio::test]
async fn a_refusal_of_one_schedule_does_not_hold_up_the_others() {
    a_schedule_ticks_in_time_beside(["refused", "unsupported"]).await;
}

/// Runs a schedule beside others, and asserts that its ticks are pushed in time. The payloads
/// of the others' jobs say how each push of such a job fails.
async fn a_schedule_ticks_in_time_beside(payloads: [&'static str; 2]) {
    let mut world = World::starting(START);
    for payload in payloads {
        let every = Every::new(seconds(10)).unwrap();
        let spec = ScheduleSpec::new(every, NewJob::new(payload)).unwrap();
        world.put(&format!("a-{payload}"), &spec).await;
    }
    let poll = every(seconds(60), Missed::Skip);
    world.put("poll", &poll).await;
    world.start_many(1).await;

    world.advance(seconds(300)).await;

    let expected = ticks(&poll, START, "2027-01-01T00:05:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    for job in world.jobs().await {
        let tick = job.headers.get(relq_schedule::SCHEDULED_FOR_HEADER).unwrap();
        let late = job.enqueued_at.unwrap().since(crate::world::at(tick));
        assert!(late < seconds(1), "{tick} is {late:?} late");
    }
    assert!(world.summary().failed_calls > 0);
}

/// While no replica confirms ticks, all schedules that tick at one moment do so in one look.
#[tokio::test]
async fn a_tick_that_is_not_confirmed_does_not_delay_the_others() {
    let mut world = World::starting(START);
    let names = ["a", "b", "c"];
    for name in names {
        world.put(name, &every(seconds(60), Missed::Skip)).await;
        world.queue.meddle(Meddling::Unconfirmed);
    }
    world.start_many(1).await;

    world.advance(seconds(60)).await;

    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), names.len());
    for job in jobs {
        assert_eq!(job.enqueued_at.unwrap(), crate::world::at("2027-01-01T00:01:00Z"));
    }
}

/// R21: a schedule that no replica confirms is stored. A scheduler that starts while a
/// replica is missing must not wait for the replica, because nothing ticks meanwhile.
#[tokio::test]
async fn a_schedule_that_is_not_confirmed_is_stored_once() {
    let mut world = World::starting(START);
    let spec = every(seconds(20), Missed::Skip);
    world.put("other", &spec).await;
    world.queue.leaves_puts_unconfirmed.store(true, Relaxed);
    let scheduler = world.scheduler().schedule(name("poll"), spec.clone());
    world.start(scheduler).await;

    world.advance(seconds(120)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:02:05Z");
    assert_eq!(world.pushed("poll").await, expected);
    assert_eq!(world.pushed("other").await, expected);
    assert_eq!(world.summary().failed_calls, 1);
}

/// R21: a tick that no replica confirms is pushed, and the next one is due at its own time.
#[tokio::test]
async fn ticks_that_are_not_confirmed_are_pushed_in_time() {
    let mut world = World::starting(START);
    let spec = every(seconds(1), Missed::Skip);
    world.put("often", &spec).await;
    (0..30).for_each(|_| world.queue.meddle(Meddling::Unconfirmed));
    world.start_many(1).await;

    world.advance(seconds(30)).await;

    let expected = ticks(&spec, START, "2027-01-01T00:00:35Z");
    assert_eq!((world.pushed("often").await, expected.len()), (expected, 30));
    for job in world.jobs().await {
        let tick = job.headers.get(relq_schedule::SCHEDULED_FOR_HEADER).unwrap();
        assert_eq!(job.enqueued_at.unwrap(), crate::world::at(tick));
    }
    let summary = world.summary();
    assert_eq!((summary.pushed, summary.failed_calls), (30, 30));
}

/// The reply to a tick that no replica confirms is not known. If the store has not recorded
/// the tick, the next read of the schedules shows it.
#[tokio::test]
async fn a_tick_that_was_not_due_and_not_confirmed_is_pushed_soon() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::Skip)).await;
    world.queue.meddle(Meddling::NotDueUnconfirmed);
    world.start_many(1).await;

    world.advance(seconds(56)).await;

    assert_eq!(world.pushed("poll").await, ["2027-01-01T00:01:00Z"]);
}

/// An option of the job that the backend lacks is refused when the schedule is stored, and not
/// at its first tick.
#[tokio::test]
async fn an_option_that_the_backend_lacks_is_refused_at_once() {
    let of_memory = World::starting(START).queue.capabilities().clone();
    let lacking = |option: Capability| {
        let others = of_memory.supported.iter().copied().filter(|it| *it != option);
        Capabilities { supported: others.collect(), ..of_memory.clone() }
    };
    let one_priority = Capabilities {
        priorities: Priority::NORMAL..=Priority::NORMAL,
        ..of_memory.clone()
    };
    let leases_of_workers =
        Capabilities { lease_scope: LeaseScope::Worker, ..of_memory.clone() };
    let job = || NewJob::new("job");
    let key = UniqueKey::new("key").unwrap();
    let refused = [
        (lacking(Capability::Expiry), job().expires_in(hours(1))),
        (lacking(Capability::Unique), job().unique(key)),
        (lacking(Capability::Results), job().keep_result(hours(1))),
        (one_priority, job().priority(Priority::HIGHEST)),
        (leases_of_workers, job().lease(hours(1))),
    ];
    for (capabilities, job) in refused {
        let world = World::starting(START);
        world.queue.capabilities.set(capabilities).unwrap();
        let spec = ScheduleSpec::new(Every::new(hours(1)).unwrap(), job).unwrap();

        let put = spec.put(&*world.queue, &name("hourly")).await;

        assert!(matches!(put, Err(Error::Unsupported { .. })), "{put:?}: {spec:?}");
        let stored = world.queue.schedules().await.unwrap();
        assert!(stored.schedules.is_empty(), "{stored:?}");
    }
}

/// By the store's clock the tick is due later than the scheduler thought.
#[tokio::test]
async fn a_tick_that_is_not_due_is_pushed_when_it_is() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::Skip)).await;
    world.start_many(1).await;
    world.queue.meddle(Meddling::NotDue(seconds(2)));

    world.advance(seconds(60)).await;

    let jobs = world.jobs().await;
    assert_eq!(jobs.len(), 1);
    let late = jobs[0].enqueued_at.unwrap();
    assert_eq!(late.since(crate::world::at("2027-01-01T00:01:00Z")), seconds(2));
}

/// A tick may be due hours later than the scheduler thought, because the store's clock was
/// set back. The schedules are read again in time all the same.
#[tokio::test]
async fn a_tick_that_is_due_much_later_delays_no_read() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(10), Missed::Skip)).await;
    world.start_many(1).await;
    world.queue.meddle(Meddling::NotDue(hours(5)));
    world.advance(seconds(10)).await;
    let new = every(seconds(60), Missed::Skip);
    world.put("new", &new).await;

    world.advance(seconds(120)).await;

    let expected = ticks(&new, "2027-01-01T00:00:15Z", "2027-01-01T00:02:15Z");
    let pushed = world.pushed("new").await;
    assert_eq!(pushed, expected, "a new schedule is found within 30 seconds");
}

/// The calls for one schedule may take so long that the next tick of an earlier one is
/// due meanwhile.
#[tokio::test]
async fn a_slow_call_does_not_delay_the_next_tick_of_another_schedule() {
    let mut world = World::starting(START);
    world.put("a-first", &every(seconds(20), Missed::Skip)).await;
    world.put("b-slow", &every(seconds(15), Missed::Skip)).await;
    world.start_many(1).await;
    world.queue.meddle(Meddling::Slow(Arc::clone(&world.clock), seconds(4)));

    world.advance(seconds(30)).await;

    let pushed = world.pushed("a-first").await;
    let first =
        world.jobs().await.into_iter().find(|job| {
            job.headers.get(relq_schedule::SCHEDULE_HEADER) == Some("a-first")
        });
    let late = first.unwrap().enqueued_at.unwrap();
    assert_eq!((pushed.len(), late), (1, crate::world::at("2027-01-01T00:00:20Z")));
}

/// The time of the calls of a look passes for the next tick, too.
#[tokio::test]
async fn a_slow_call_does_not_delay_the_next_tick() {
    let mut world = World::starting(START);
    world.put("poll", &every(seconds(20), Missed::Skip)).await;
    world.start_many(1).await;
    world.queue.meddle(Meddling::Slow(Arc::clone(&world.clock), seconds(15)));

    world.advance(seconds(60)).await;

    let pushed: Vec<_> =
        world.jobs().await.iter().map(|job| job.enqueued_at.unwrap()).collect();
    let times =
        ["2027-01-01T00:00:35Z", "2027-01-01T00:00:40Z", "2027-01-01T00:01:00Z"];
    assert_eq!(pushed, times.map(crate::world::at));
}

#[tokio::test]
async fn a_scheduler_stops_when_it_is_asked_to() {
    let world = World::starting(START);
    world.put("poll", &every(seconds(60), Missed::Skip)).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let scheduler = world.scheduler().stop_on(async move { drop(stopped.await) });
    let running = tokio::spawn(scheduler.run());
    world.advance(seconds(1)).await;

    drop(stop);

    let summary = tokio::time::timeout(seconds(60), running).await.unwrap().unwrap();
    assert_eq!(summary.unwrap().pushed, 0);
}

/// The first request that is made stops the scheduler, whichever of them it is.
#[tokio::test]
async fn any_of_several_requests_stops_a_scheduler() {
    for made in 0..2 {
        let world = World::starting(START);
        let (one, of_one) = oneshot::channel::<()>();
        let (other, of_other) = oneshot::channel::<()>();
        let scheduler = world
            .scheduler()
            .stop_on(async move { drop(of_one.await) })
            .stop_on(async move { drop(of_other.await) });
        let running = tokio::spawn(scheduler.run());
        world.advance(seconds(1)).await;
        let mut requests = vec![one, other];

        drop(requests.remove(made));

        let ended = tokio::time::timeout(seconds(60), running).await;
        let ended = ended.unwrap_or_else(|_| panic!("request {made} stops nothing"));
        assert_eq!(ended.unwrap().unwrap().pushed, 0);
        drop(requests);
    }
}

/// The backend of a queue of several partitions has schedules, so the message must not say that
/// it has none.
#[tokio::test]
async fn a_queue_without_schedules_is_refused_by_name() {
    let of_memory = World::starting(START).queue.capabilities().clone();
    for (order, why, option) in [
        (of_memory.order, "the backend memory has no schedules", "a schedule"),
        (
            Order::ByPart,
            "a queue of several partitions has no schedules",
            "a schedule of a queue of several partitions",
        ),
    ] {
        let mut world = World::starting(START);
        Arc::get_mut(&mut world.queue).unwrap().has_schedules = false;
        let capabilities = Capabilities { order, ..of_memory.clone() };
        world.queue.capabilities.set(capabilities).unwrap();

        let error = world.scheduler().run().await.unwrap_err();
        assert_eq!(error.to_string(), why);

        let spec = every(seconds(60), Missed::Skip);
        let error = spec.put(&*world.queue, &name("poll")).await.unwrap_err();
        let message =
            format!("memory put schedule: {option} is not an option of this backend");
        assert_eq!(error.to_string(), message);
    }
}

#[tokio::test]
async fn a_look_interval_that_loses_ticks_is_refused() {
    let world = World::starting(START);
    for interval in [seconds(0), seconds(31), hours(1)] {
        let ended = world.scheduler().look_every(interval).run().await;
        assert!(matches!(ended, Err(SchedulerError::LookEvery)));
    }
}

#[tokio::test]
async fn a_schedule_that_the_backend_cannot_store_ends_the_scheduler() {
    let world = World::starting(START);
    let job = NewJob::new("x".repeat(relq_schedule::MAX_DEFINITION));
    let spec = ScheduleSpec::new(Every::new(seconds(60)).unwrap(), job).unwrap();
    let ended = world.scheduler().schedule(name("large"), spec).run().await;
    assert!(matches!(ended, Err(SchedulerError::Refused { .. })));
}

/// Its second tick would be a duplicate of the first.
#[test]
fn a_job_with_an_id_is_refused() {
    let id = relq_core::JobId::new("one").unwrap();
    let job = NewJob::new("a").id(id);
    let error = ScheduleSpec::new(Every::new(seconds(60)).unwrap(), job).unwrap_err();
    assert!(error.to_string().contains("must not have an id"), "{error}");
}
