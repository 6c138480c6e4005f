//! Tests of the rule which ticks push their jobs (R28, R18).

use relq_core::{
    environment::Timestamp,
    schedule::{Tick, Ticked},
};

use super::fixture::{
    DAILY, HOURLY, REPORT, SECOND, assert_stored, name, tick, tick_of,
};
use crate::{
    cases::{
        case,
        times::{TOLERANCE, now},
    },
    harness::{actor::Actor, checks::delivers, clock::Skew, store::Store},
};

/// Asserts that the tick pushes nothing and is not recorded. Returns the answer.
async fn pushes_nothing(actor: &Actor, tick: &Tick) -> Ticked {
    let before = (actor.found().await.schedules, actor.figures().await.unfinished());
    let ticked = actor.tick(tick, "refused").await;
    let after = (actor.found().await.schedules, actor.figures().await.unfinished());
    assert_eq!(after, before, "R28: the answer is {ticked:?}");
    ticked
}

case!(a_tick_pushes_its_job_once: R28 => Schedules, real_time);
/// The first push of a tick stores its job and records the tick. Each later one stores
/// nothing, whoever makes it.
async fn a_tick_pushes_its_job_once(store: &Store) {
    let (one, other) = (store.actor("one").await, store.actor("other").await);
    let stored = one.put_report().await;
    store.advance(SECOND).await;
    let due = tick(HOURLY, stored.plus(SECOND / 2));

    one.ticks(&due, "job").await;

    assert_eq!(pushes_nothing(&one, &due).await, Ticked::NotLater);
    assert_eq!(pushes_nothing(&other, &due).await, Ticked::NotLater);
    delivers(&other, ["job"]).await;
    assert_eq!(pushes_nothing(&other, &due).await, Ticked::NotLater, "it was done");
}

case!(a_tick_is_later_than_the_last: R28 => Schedules);
/// A tick at the time of the last one or before it pushes nothing. One that is a
/// millisecond later pushes its job.
async fn a_tick_is_later_than_the_last(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(10 * SECOND).await;
    let millisecond = SECOND / 1000;
    let first = stored.plus(millisecond);
    let third = stored.plus(3 * SECOND);

    let early = Timestamp::from_unix_ms(stored.unix_ms() - 1);
    for at in [Timestamp::from_unix_ms(0), early, stored] {
        assert_eq!(pushes_nothing(&actor, &tick(HOURLY, at)).await, Ticked::NotLater);
    }
    actor.ticks(&tick(HOURLY, first), "first").await;
    actor.ticks(&tick(HOURLY, third), "third").await;
    for at in [stored, first, stored.plus(2 * SECOND), third] {
        assert_eq!(pushes_nothing(&actor, &tick(HOURLY, at)).await, Ticked::NotLater);
    }
    actor.ticks(&tick(HOURLY, third.plus(millisecond)), "next").await;
    delivers(&actor, ["first", "third", "next"]).await;
}

case!(ticks_are_compared_as_numbers: R28 => Schedules);
/// Whether a tick is later is decided by its number, also around a round number and
/// before 1970.
async fn ticks_are_compared_as_numbers(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await.unix_ms();
    // The numbers around the next one with so many zeros.
    let round = (stored / 100_000 + 1) * 100_000;
    store.advance(200 * SECOND).await;

    for (at, job) in [(round - 1, "one"), (round, "two"), (round + 1, "three")] {
        actor.ticks(&tick(HOURLY, Timestamp::from_unix_ms(at)), job).await;
    }

    let last = Timestamp::from_unix_ms(round - 1);
    assert_eq!(pushes_nothing(&actor, &tick(HOURLY, last)).await, Ticked::NotLater);
    let negative = Timestamp::from_unix_ms(-round - 2);
    assert_eq!(pushes_nothing(&actor, &tick(HOURLY, negative)).await, Ticked::NotLater);
    delivers(&actor, ["one", "two", "three"]).await;
}

case!(a_tick_is_not_pushed_early: R28 R18 => Schedules);
/// A tick that is not due pushes nothing, and the answer says how long it takes until
/// the tick is due.
async fn a_tick_is_not_pushed_early(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    let later = tick(HOURLY, now(store).plus(10 * SECOND));

    assert_eq!(pushes_nothing(&actor, &later).await, Ticked::NotDue(10 * SECOND));
    store.advance(10 * SECOND - SECOND / 1000).await;
    assert_eq!(pushes_nothing(&actor, &later).await, Ticked::NotDue(SECOND / 1000));
    store.advance(SECOND / 1000).await;

    actor.ticks(&later, "due").await;
    delivers(&actor, ["due"]).await;
}

case!(the_farthest_tick_is_not_due: R28 R21 => Schedules);
/// A tick at the largest time is not due, and the answer says so.
async fn the_farthest_tick_is_not_due(store: &Store) {
    let actor = store.actor("scheduler").await;
    actor.put_report().await;

    let last = tick(HOURLY, Timestamp::from_unix_ms(i64::MAX));
    let ticked = pushes_nothing(&actor, &last).await;

    assert!(matches!(ticked, Ticked::NotDue(_)), "R28: {ticked:?}");
}

case!(a_wrong_clock_changes_no_tick: R18 R28 => Schedules @ redis, real_time);
/// A scheduler whose clock is wrong by an hour is told the store's time, stores its
/// schedules at the store's time, and pushes each tick when it is due by the store's
/// clock.
async fn a_wrong_clock_changes_no_tick(store: &Store) {
    let hour = 3600 * SECOND;
    for (of, skew) in [("fast", Skew::Ahead(hour)), ("slow", Skew::Behind(hour))] {
        let wrong = store.actor_with_clock(of, skew).await;
        wrong.put(of, HOURLY).await;
        let stored = wrong.last_tick(&name(of)).await;
        let told = wrong.found().await.now;
        for time in [stored, told] {
            let apart = time.since(now(store)).max(now(store).since(time));
            assert!(apart <= TOLERANCE, "R18: {of}: {time:?} is {apart:?} wrong");
        }
        let later = tick_of(of, HOURLY, stored.plus(60 * SECOND));

        let ticked = pushes_nothing(&wrong, &later).await;

        let Ticked::NotDue(wait) = ticked else { panic!("R18: {of}: {ticked:?}") };
        let is_right = wait <= 60 * SECOND && wait + TOLERANCE >= 60 * SECOND;
        assert!(is_right, "R18: {of}: due in {wait:?}");
        store.advance(SECOND).await;
        wrong.ticks(&tick_of(of, HOURLY, stored.plus(SECOND / 2)), "due").await;
    }
    delivers(&store.actor("worker").await, ["due", "due"]).await;
}

case!(a_replaced_schedule_pushes_no_old_tick: R28 => Schedules);
/// A scheduler that still knows the old definition of a schedule pushes nothing, also at
/// a later tick.
async fn a_replaced_schedule_pushes_no_old_tick(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(10 * SECOND).await;
    actor.put(REPORT, DAILY).await;
    store.advance(SECOND).await;

    let old = tick(HOURLY, now(store));
    assert_eq!(pushes_nothing(&actor, &old).await, Ticked::Changed);
    let missed = pushes_nothing(&actor, &tick(HOURLY, stored.plus(SECOND))).await;
    assert!(matches!(missed, Ticked::Changed | Ticked::NotLater), "{missed:?}");

    actor.ticks(&tick(DAILY, now(store)), "daily").await;
    delivers(&actor, ["daily"]).await;
}

case!(a_removed_schedule_pushes_nothing: R28 => Schedules);
/// A scheduler that still knows a removed schedule pushes nothing. The same holds for a
/// schedule that never was.
async fn a_removed_schedule_pushes_nothing(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    store.advance(SECOND).await;
    actor.remove(REPORT).await;

    for of in [REPORT, "unknown"] {
        let gone = tick_of(of, HOURLY, now(store));
        assert_eq!(pushes_nothing(&actor, &gone).await, Ticked::Changed);
    }
}

case!(a_schedule_that_came_back_changed_pushes_no_old_tick: R28 => Schedules);
/// A schedule was removed and stored again with another definition. The ticks of the
/// first one push nothing.
async fn a_schedule_that_came_back_changed_pushes_no_old_tick(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    actor.remove(REPORT).await;
    actor.put(REPORT, DAILY).await;
    store.advance(SECOND).await;

    let old = pushes_nothing(&actor, &tick(HOURLY, now(store))).await;

    assert_eq!(old, Ticked::Changed);
}

case!(a_schedule_that_came_back_pushes_no_old_tick: R28 => Schedules);
/// A schedule was removed or replaced, and then stored again as it was. Its ticks before
/// that push nothing, and those after it do.
async fn a_schedule_that_came_back_pushes_no_old_tick(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    for is_removed in [true, false] {
        actor.put(REPORT, HOURLY).await;
        store.advance(10 * SECOND).await;
        let missed = tick(HOURLY, now(store));
        match is_removed {
            true => assert!(actor.remove(REPORT).await),
            false => drop(actor.put(REPORT, DAILY).await),
        }
        actor.put(REPORT, HOURLY).await;

        assert_eq!(pushes_nothing(&actor, &missed).await, Ticked::NotLater);

        store.advance(SECOND).await;
        assert_eq!(pushes_nothing(&actor, &missed).await, Ticked::NotLater);
        assert_stored(&actor.tick(&tick(HOURLY, now(store)), "next").await);
    }
    delivers(&actor, ["next", "next"]).await;
}
