//! Futures that are dropped: each call takes effect fully or not at all (R22, R28).

use std::time::Duration;

use relq_core::schedule::Ticked;
use tokio::time::timeout;

use super::fixture::{DAILY, HOURLY, SECOND, tick_of};
use crate::{
    cases::{cancel_safety::moments, case, times::now},
    harness::{
        checks::{drain, eventually, expect_exactly, payloads},
        store::Store,
    },
};

case!(dropped_ticks_are_pushed_and_recorded_or_neither: R22 R28 => Schedules);
/// A `push_tick` that is dropped at any moment has pushed and recorded its tick, or
/// neither: a repetition pushes the job exactly if it was not pushed before.
async fn dropped_ticks_are_pushed_and_recorded_or_neither(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    let names: Vec<_> = (0..60).map(|number| format!("schedule-{number}")).collect();
    for of in &names {
        actor.put(of, HOURLY).await;
    }
    store.advance(SECOND).await;
    let at = now(store);

    for (of, moment) in names.iter().zip(moments()) {
        let due = tick_of(of, HOURLY, at);
        let _ = timeout(moment, actor.tick(&due, of.clone())).await;
    }
    actor.store_one("the last").await;

    let other = store.actor("other").await;
    let mut served = payloads(&drain(&other).await);
    for of in &names {
        let was_served = served.iter().any(|job| job == of.as_bytes());
        let ticked = other.tick(&tick_of(of, HOURLY, at), of.clone()).await;
        assert_eq!(ticked == Ticked::NotLater, was_served, "R28: {of}: {ticked:?}");
    }
    served.extend(payloads(&drain(&other).await));
    served.retain(|job| job != "the last");
    expect_exactly(served, names.into_iter().map(Into::into));
}

case!(dropped_changes_of_a_schedule_are_whole: R22 R28 => Schedules);
/// A call that stores or removes a schedule and is dropped at any moment has done so, or
/// has changed nothing. The same call then completes it.
async fn dropped_changes_of_a_schedule_are_whole(store: &Store) {
    let (actor, other) = (store.actor("s").await, store.actor("other").await);
    for (number, moment) in moments().enumerate() {
        let of = format!("schedule-{number}");
        other.put(&of, HOURLY).await;
        let _ = timeout(moment, actor.put(&of, DAILY)).await;
        let _ = timeout(moment, actor.remove(&of)).await;
    }

    let found = other.found().await.schedules;
    let is_known = |definition: &[u8]| [HOURLY, DAILY].contains(&definition);
    assert!(found.iter().all(|one| is_known(&one.definition)), "R28: {found:?}");
    for number in 0..60 {
        actor.remove(&format!("schedule-{number}")).await;
    }
    eventually("the removal of all schedules", || async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        actor.found().await.schedules.is_empty().then_some(())
    })
    .await;
}
