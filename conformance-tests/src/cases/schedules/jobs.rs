//! Tests of the jobs that ticks push: they are as a push stores them (R28, R4, R16).

use std::time::Duration;

use relq_core::{
    Error, NewJob,
    error::Operation,
    outcome::{DuplicateOf, Pushed},
    schedule::Ticked,
    unique::OnDuplicate,
};

use super::fixture::{HOURLY, SECOND, assert_stored, tick};
use crate::{
    cases::{
        case,
        times::{assert_pushed_at, now},
    },
    harness::{
        checks::{delivers, drain, duplicate, id, key, payloads},
        samples::{delivered, samples, views},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
        waiter::Waiter,
    },
};

case!(a_tick_stores_its_job_as_a_push_does: R28 R2 R11 R14 R15 R16 R17 R27 => Schedules);
/// A job with any options is listed and delivered as if a push had stored it.
async fn a_tick_stores_its_job_as_a_push_does(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let pusher = store.actor_on("pusher", "pushed").await;
    let class = actor.class();
    let stored = actor.put_report().await;
    store.advance(60 * SECOND).await;

    for (number, job) in (1..).zip(samples()) {
        let job = class.fit(job);
        pusher.store_one(job.clone()).await;
        actor.ticks(&tick(HOURLY, stored.plus(number * SECOND)), job).await;
    }

    assert_eq!(views(&actor).await, views(&pusher).await);
    let both = [&actor, &pusher];
    assert_eq!(delivered(&actor).await, delivered(&pusher).await);
    store.advance(HELD + PAST_BRIEF).await;
    for queue in both {
        queue.recover_all().await;
    }
    assert_eq!(views(&actor).await, views(&pusher).await, "after the delays");
}

case!(the_store_says_when_a_tick_was_pushed: R18 R27 R28 => Schedules @ redis);
/// The store itself records when the job of a tick was pushed. So the first one after its
/// clock was set back has the right time, also if the scheduler stays connected.
async fn the_store_says_when_a_tick_was_pushed(store: &Store) {
    let actor = store.actor("scheduler").await;
    store.set_clock_back(60 * 60 * SECOND);
    let stored = actor.put_report().await;
    store.advance(SECOND).await;
    let pushed = now(store);

    actor.ticks(&tick(HOURLY, stored.plus(SECOND)), "job").await;

    let held = actor.take_one().await;
    assert_pushed_at("the job of a tick", held.enqueued_at, pushed);
}

case!(a_tick_obeys_the_delay_of_its_job: R14 R28 => Schedules Delay);
/// The job of a tick is ready when its delay has passed, counted from the push and not
/// from the tick.
async fn a_tick_obeys_the_delay_of_its_job(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(60 * SECOND).await;
    actor
        .ticks(&tick(HOURLY, stored.plus(SECOND)), NewJob::new("late").delay(SECOND))
        .await;

    store.advance(SECOND - SECOND / 1000).await;
    assert_eq!(actor.recover_all().await.promoted, 0);
    assert_eq!(actor.take(1).await, [], "R14: it is not due");
    store.advance(SECOND / 1000).await;
    actor.recover_all().await;

    delivers(&actor, ["late"]).await;
}

case!(a_tick_obeys_the_priority_of_its_job: R15 R28 => Schedules Priority);
/// An urgent job that a tick pushed is delivered before the jobs that were pushed
/// earlier.
async fn a_tick_obeys_the_priority_of_its_job(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    actor.store(["one", "two"]).await;
    store.advance(SECOND).await;
    let urgent = NewJob::new("urgent").priority(actor.class().most_urgent());
    actor.ticks(&tick(HOURLY, now(store)), urgent).await;

    assert_eq!(actor.take_one().await.payload, "urgent");
}

case!(a_tick_takes_its_turn: R13 R28 => Schedules Fifo);
/// The jobs of ticks and those of pushes are delivered in the order in which they were
/// stored.
async fn a_tick_takes_its_turn(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(60 * SECOND).await;
    let mut wanted = Vec::new();
    for number in 1..=5 {
        let (pushed, ticked) = (format!("push {number}"), format!("tick {number}"));
        actor.store_one(pushed.clone()).await;
        actor.ticks(&tick(HOURLY, stored.plus(number * SECOND)), ticked.clone()).await;
        wanted.extend([pushed, ticked]);
    }

    assert_eq!(payloads(&drain(&actor).await), wanted);
}

case!(a_tick_wakes_a_waiting_claim: R21 R28 => Schedules BlockingWait, real_time);
/// The job of a tick wakes a claim that waits.
async fn a_tick_wakes_a_waiting_claim(store: &Store) {
    let (worker, scheduler) = (store.actor("w").await, store.actor("s").await);
    let stored = scheduler.put_report().await;
    store.advance(SECOND).await;
    let waiter = Waiter::start(store, &worker, 1).await;

    assert_stored(&scheduler.tick(&tick(HOURLY, stored.plus(SECOND / 2)), "job").await);

    assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
}

case!(a_tick_whose_key_is_held_is_recorded: R16 R28 => Schedules Unique);
/// If another job holds the unique key of a tick's job, nothing is stored and the tick
/// is recorded. The job is not pushed later by the same tick.
async fn a_tick_whose_key_is_held_is_recorded(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(60 * SECOND).await;
    let keyed = |name: &'static str| NewJob::new(name).unique(key("report"));
    let due = |number| tick(HOURLY, stored.plus(number * SECOND));
    actor.ticks(&due(1), keyed("first")).await;
    let first = actor.take_one().await;

    let ticked = actor.tick(&due(2), keyed("second")).await;

    let held = duplicate(first.job(), DuplicateOf::UniqueKey);
    assert_eq!(ticked, Ticked::Pushed(held), "R16");
    assert_eq!(actor.report().await.last_tick, due(2).at, "R28: the tick is recorded");
    assert_eq!(actor.figures().await.unfinished(), 1, "R16: nothing is stored");
    actor.finish(&first).await;
    assert_eq!(actor.tick(&due(2), keyed("second")).await, Ticked::NotLater);
    actor.ticks(&due(3), keyed("third")).await;
    delivers(&actor, ["third"]).await;
}

case!(a_tick_may_move_the_holder_of_its_key: R16 R28 => Schedules Unique Delay);
/// If the job of a tick reschedules the holder of its key, the holder gets the new due
/// time, and the tick is recorded.
async fn a_tick_may_move_the_holder_of_its_key(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    let holder =
        actor.store_one(NewJob::new("holder").unique(key("k")).delay(HELD)).await;
    store.advance(SECOND).await;
    let sooner = NewJob::new("x").unique_or(key("k"), OnDuplicate::Reschedule);

    let ticked = actor.tick(&tick(HOURLY, now(store)), sooner.delay(BRIEF)).await;

    assert_eq!(ticked, Ticked::Pushed(duplicate(&holder, DuplicateOf::UniqueKey)));
    assert_eq!(actor.report().await.last_tick, now(store));
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    delivers(&actor, ["holder"]).await;
}

case!(a_tick_whose_id_is_known_is_recorded: R4 R28 => Schedules ClientIds);
/// If a job with the id of a tick's job is in the queue or was done a moment ago,
/// nothing is stored and the tick is recorded.
async fn a_tick_whose_id_is_known_is_recorded(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(60 * SECOND).await;
    let named = || NewJob::new("job").id(id("mine"));
    let due = |number| tick(HOURLY, stored.plus(number * SECOND));
    let first = actor.tick(&due(1), named()).await;
    assert_eq!(first, Ticked::Pushed(Pushed::Stored(id("mine"))));
    let known = Ticked::Pushed(duplicate(&id("mine"), DuplicateOf::Id));

    assert_eq!(actor.tick(&due(2), named()).await, known, "R4: it is ready");
    delivers(&actor, ["job"]).await;
    assert_eq!(actor.tick(&due(3), named()).await, known, "R4: it was done");

    assert_eq!(actor.report().await.last_tick, due(3).at);
    assert_eq!(actor.figures().await.unfinished(), 0, "R4: nothing is stored");
}

case!(a_tick_of_an_invalid_job_is_not_recorded: R5 R21 R28 => Schedules);
/// If the job of a tick is refused, because it is too large or its delay is endless, or
/// because the backend lacks one of its options, the tick is not recorded, and can be
/// pushed with another job.
async fn a_tick_of_an_invalid_job_is_not_recorded(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    let before = actor.report().await;
    store.advance(SECOND).await;
    let due = tick(HOURLY, now(store));
    let large = NewJob::new(vec![0; actor.limits().max_payload + 1]);
    let refused = [large, NewJob::new("endless").delay(Duration::MAX)].into_iter();
    let lacking: Vec<_> =
        samples().into_iter().filter(|job| !actor.class().takes(job)).collect();

    for job in refused.chain(lacking) {
        let told = format!("{:?}", job.payload.len());
        let error = actor.scheduler().push_tick(&due, job).await;
        let error = error.expect_err(&told);
        let is_refused =
            matches!(error, Error::Invalid { .. } | Error::Unsupported { .. });
        assert!(is_refused, "R5: {error:?}");
        assert_eq!(error.at().operation, Operation::PushTick, "R21: {error:?}");
        assert_eq!(actor.report().await, before, "R28: the tick is not recorded");
        assert_eq!(actor.figures().await.unfinished(), 0, "R5: nothing is stored");
    }
    actor.ticks(&due, "good").await;
    delivers(&actor, ["good"]).await;
}

case!(nothing_is_sent_for_a_refused_job: R5 R28 => Schedules @ redis);
/// A definition or a job that is refused is refused before anything is sent.
async fn nothing_is_sent_for_a_refused_job(store: &Store) {
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    let due = tick(HOURLY, now(store));
    let sent = store.steps_of("scheduler");

    let large = NewJob::new(vec![0; actor.limits().max_payload + 1]);
    actor.scheduler().push_tick(&due, large).await.expect_err("it is too large");
    let definition = vec![0; relq_core::schedule::MAX_DEFINITION + 1];
    let put = actor.scheduler().put_schedule(&due.name, &definition).await;
    put.expect_err("it is too large");

    assert_eq!(store.steps_of("scheduler"), sent, "R5: something was sent");
}
