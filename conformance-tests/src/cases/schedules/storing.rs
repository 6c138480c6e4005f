//! Tests of the calls that store, replace and remove schedules (R28, R5).

use relq_core::{
    Error,
    error::{Effect, Operation},
    schedule::{MAX_DEFINITION, ScheduleStored, Ticked},
};

use super::fixture::{DAILY, HOURLY, REPORT, SECOND, assert_stored, name, tick};
use crate::{
    cases::{
        case,
        times::{TOLERANCE, now},
    },
    harness::{checks::delivers, store::Store},
};

case!(a_schedule_begins_when_it_is_stored: R28 => Schedules, real_time);
/// The last tick of a new schedule is the time at which it was stored.
async fn a_schedule_begins_when_it_is_stored(store: &Store) {
    let actor = store.actor("scheduler").await;
    assert_eq!(actor.found().await.schedules, []);
    let before = now(store);

    assert_eq!(actor.put(REPORT, HOURLY).await, ScheduleStored::Created);

    let report = actor.report().await;
    assert_eq!(report.definition, HOURLY);
    let wrong = report.last_tick.since(before).max(before.since(report.last_tick));
    assert!(wrong <= TOLERANCE, "R28: stored at {before:?}: {report:?}");
}

case!(a_replaced_schedule_begins_anew: R28 => Schedules);
/// A new definition replaces the old one, and the last tick is the time of the
/// replacement. Ticks that were missed before are not pushed.
async fn a_replaced_schedule_begins_anew(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(10 * SECOND).await;
    actor.ticks(&tick(HOURLY, stored.plus(SECOND)), "first").await;

    assert_eq!(actor.put(REPORT, DAILY).await, ScheduleStored::Replaced);

    let report = actor.report().await;
    assert_eq!(report.definition, DAILY);
    assert_eq!(report.last_tick, now(store), "R28: the time of the replacement");
    let missed = tick(DAILY, stored.plus(5 * SECOND));
    assert_eq!(actor.tick(&missed, "missed").await, Ticked::NotLater);
    store.advance(SECOND).await;
    actor.ticks(&tick(DAILY, now(store)), "second").await;
    delivers(&actor, ["first", "second"]).await;
}

case!(the_same_definition_keeps_the_last_tick: R28 => Schedules);
/// A schedule that is stored again with the same definition keeps its last tick, so the
/// ticks since then can still be pushed.
async fn the_same_definition_keeps_the_last_tick(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let stored = actor.put_report().await;
    store.advance(10 * SECOND).await;
    assert_eq!(actor.put(REPORT, HOURLY).await, ScheduleStored::Unchanged);
    assert_eq!(actor.report().await.last_tick, stored);
    let second = stored.plus(2 * SECOND);
    actor.ticks(&tick(HOURLY, second), "second").await;

    assert_eq!(actor.put(REPORT, HOURLY).await, ScheduleStored::Unchanged);

    assert_eq!(actor.report().await.last_tick, second);
    actor.ticks(&tick(HOURLY, stored.plus(3 * SECOND)), "third").await;
    delivers(&actor, ["second", "third"]).await;
}

case!(a_schedule_is_removed_once: R28 => Schedules);
/// A removal says whether there was a schedule, and takes only that one.
async fn a_schedule_is_removed_once(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    assert!(!actor.remove(REPORT).await, "R28: there was no schedule");
    actor.put("other", DAILY).await;
    actor.put(REPORT, HOURLY).await;

    assert!(actor.remove(REPORT).await, "R28: there was a schedule");

    assert!(!actor.remove(REPORT).await, "R28: it was removed before");
    let left = actor.found().await.schedules;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].name, name("other"));
    store.advance(SECOND).await;
    assert_eq!(actor.put(REPORT, HOURLY).await, ScheduleStored::Created);
    assert_eq!(actor.last_tick(&name(REPORT)).await, now(store));
}

case!(jobs_of_a_removed_schedule_stay: R28 R1 => Schedules);
/// The jobs that a schedule pushed stay in the queue when it is replaced and removed.
async fn jobs_of_a_removed_schedule_stay(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    store.advance(SECOND).await;
    actor.ticks(&tick(HOURLY, now(store)), "first").await;

    actor.put(REPORT, DAILY).await;
    actor.remove(REPORT).await;

    delivers(&actor, ["first"]).await;
}

case!(a_definition_may_be_any_bytes: R28 R2 => Schedules);
/// The store keeps a definition byte for byte, and compares all of its bytes.
async fn a_definition_may_be_any_bytes(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let every_byte: &[u8] = &(0..=255).collect::<Vec<u8>>().leak()[..];
    let definitions: [&'static [u8]; 10] = [
        b"a",
        b"",
        b"\0",
        b"\0\0",
        b"0",
        b"00",
        b"a\r\nb",
        b"\xff\xfe",
        b"a\0",
        every_byte,
    ];
    for definition in definitions {
        let stored = actor.put(REPORT, definition).await;
        assert_ne!(stored, ScheduleStored::Unchanged, "R28: {definition:?} is new");
        assert_eq!(actor.report().await.definition, definition);
        assert_eq!(actor.put(REPORT, definition).await, ScheduleStored::Unchanged);
        store.advance(SECOND).await;
        assert_stored(&actor.tick(&tick(definition, now(store)), "job").await);
    }
    delivers(&actor, ["job"; 10]).await;
}

case!(a_schedule_may_have_any_valid_name: R28 => Schedules);
/// Schedules whose names are alike, or are words that a store may use itself, are
/// schedules of their own.
async fn a_schedule_may_have_any_valid_name(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let long = "x".repeat(64);
    let mut names =
        ["a", "A", "aa", "a.", ".", "..", "-", "_", "0", "00", "last_tick", "at"];
    names.sort_unstable();
    for of in names.into_iter().chain([&*long]) {
        assert_eq!(actor.put(of, of.as_bytes()).await, ScheduleStored::Created);
    }
    actor.remove("aa").await;

    let left: Vec<_> = actor.found().await.schedules;

    let wanted = names.into_iter().filter(|of| *of != "aa").chain([&*long]);
    let wanted: Vec<_> = wanted.map(|of| (name(of), of.as_bytes().to_vec())).collect();
    let left: Vec<_> =
        left.into_iter().map(|one| (one.name, one.definition.to_vec())).collect();
    assert_eq!(left, wanted);
}

case!(the_largest_definition_is_stored: R28 => Schedules);
/// A definition of exactly the allowed size is stored, and its ticks are pushed.
async fn the_largest_definition_is_stored(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let largest: &'static [u8] = vec![7; MAX_DEFINITION].leak();

    assert_eq!(actor.put(REPORT, largest).await, ScheduleStored::Created);

    assert_eq!(actor.report().await.definition, largest);
    store.advance(SECOND).await;
    actor.ticks(&tick(largest, now(store)), "job").await;
    delivers(&actor, ["job"]).await;
}

case!(a_definition_that_is_too_large_is_refused: R5 R21 R28 => Schedules);
/// A definition that is too large is refused, and the schedule stays as it was.
async fn a_definition_that_is_too_large_is_refused(store: &Store) {
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    let before = actor.report().await;
    for of in [REPORT, "another"] {
        let too_large = vec![7; MAX_DEFINITION + 1];

        let refused = actor.scheduler().put_schedule(&name(of), &too_large).await;

        let error = refused.expect_err("the definition is refused");
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
        assert_eq!(error.effect(), Effect::No, "R21: the effect of {error:?}");
        assert_eq!(error.at().operation, Operation::PutSchedule, "{error:?}");
        assert_eq!(actor.report().await, before, "R5: nothing is stored");
    }
}
