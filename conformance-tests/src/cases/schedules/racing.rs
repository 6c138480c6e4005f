//! Calls of several schedulers at the same moment: each tick is pushed once (R28).

use std::sync::Arc;

use bytes::Bytes;
use relq_core::{
    outcome::Pushed,
    schedule::{Tick, Ticked},
};

use super::fixture::{DAILY, HOURLY, REPORT, SECOND, name, pushed, tick, tick_of};
use crate::{
    cases::{case, company::at_once, times::now},
    harness::{
        actor::Actor,
        checks::{delivers, drain, expect_exactly, payloads},
        store::Store,
    },
};

/// How often a case lets schedulers race with each other.
const ROUNDS: u32 = 25;

async fn schedulers(store: &Store) -> Vec<Arc<Actor>> {
    let mut schedulers = Vec::new();
    for of in ["s1", "s2", "s3"] {
        schedulers.push(Arc::new(store.actor(of).await));
    }
    schedulers
}

/// A call of `push_tick` that owns its arguments.
async fn ticking(actor: Arc<Actor>, tick: Tick, job: String) -> Ticked {
    actor.tick(&tick, job).await
}

case!(schedulers_at_one_tick_push_it_once: R28 => Schedules, real_time);
/// Three schedulers push the same tick at the same moment. One of them pushes the job,
/// and the others are told that it was pushed.
async fn schedulers_at_one_tick_push_it_once(store: &Store) {
    let schedulers = schedulers(store).await;
    let stored = schedulers[0].put_report().await;
    store.advance(SECOND).await;
    let mut jobs = Vec::new();

    for round in 1..=ROUNDS {
        let due = tick(HOURLY, stored.plus(round * SECOND / 100));
        let job = format!("tick {round}");
        let calls = schedulers
            .iter()
            .map(|one| ticking(Arc::clone(one), due.clone(), job.clone()));
        let ticked = at_once(calls).await;
        assert_eq!(pushed(&ticked), 1, "R28: {ticked:?}");
        let late = ticked.iter().filter(|one| **one == Ticked::NotLater).count();
        assert_eq!(late, 2, "R28: {ticked:?}");
        jobs.push(Bytes::from(job));
    }

    let served = payloads(&drain(&store.actor("worker").await).await);
    expect_exactly(served, jobs);
}

case!(schedulers_at_ticks_in_a_row_push_each_once_at_most: R28 => Schedules);
/// Three schedulers push two ticks of one schedule at the same moment. No tick is pushed
/// twice, and the later one is always pushed.
async fn schedulers_at_ticks_in_a_row_push_each_once_at_most(store: &Store) {
    store.stop_clock();
    let schedulers = schedulers(store).await;
    let stored = schedulers[0].put_report().await;
    store.advance(2 * ROUNDS * SECOND).await;

    for round in 0..ROUNDS {
        let due = [1, 2].map(|of| tick(HOURLY, stored.plus((2 * round + of) * SECOND)));
        let calls = schedulers.iter().flat_map(|one| {
            let [first, second] = due.clone();
            [
                ticking(Arc::clone(one), second, "second".to_owned()),
                ticking(Arc::clone(one), first, "first".to_owned()),
            ]
        });
        let ticked = at_once(calls).await;
        let of = |which: usize| {
            let its = ticked.iter().skip(which).step_by(2).cloned();
            pushed(&its.collect::<Vec<_>>())
        };
        assert_eq!(of(0), 1, "R28: the later tick: {ticked:?}");
        assert!(of(1) <= 1, "R28: the earlier tick: {ticked:?}");
        let served = drain(&schedulers[0]).await.len();
        assert_eq!(served, pushed(&ticked), "R28: as many jobs as pushes: {ticked:?}");
        assert_eq!(schedulers[0].report().await.last_tick, due[1].at);
    }
}

case!(many_schedules_tick_at_once: R28 => Schedules);
/// Three schedulers push the ticks of many schedules at the same moment. The job of each
/// schedule is pushed once.
async fn many_schedules_tick_at_once(store: &Store) {
    const SCHEDULES: usize = 40;
    store.stop_clock();
    let schedulers = schedulers(store).await;
    let names: Vec<_> = (0..SCHEDULES).map(|of| format!("schedule-{of}")).collect();
    for of in &names {
        schedulers[0].put(of, HOURLY).await;
    }
    store.advance(SECOND).await;
    let at = now(store);

    let calls = schedulers.iter().flat_map(|one| {
        let call =
            |of: &String| ticking(Arc::clone(one), tick_of(of, HOURLY, at), of.clone());
        names.iter().map(call).collect::<Vec<_>>()
    });
    let ticked = at_once(calls).await;

    assert_eq!(pushed(&ticked), SCHEDULES, "R28: {ticked:?}");
    delivers(&schedulers[0], names.into_iter().map(Bytes::from)).await;
    for schedule in schedulers[0].found().await.schedules {
        assert_eq!(schedule.last_tick, at, "R28: {}", schedule.name);
    }
}

case!(a_tick_races_a_replacement: R28 => Schedules);
/// A tick and a replacement of its schedule at the same moment: the job is pushed before
/// the replacement, or not at all. Then the replacement is what is stored.
async fn a_tick_races_a_replacement(store: &Store) {
    store.stop_clock();
    let (one, other) = (store.actor("one").await, Arc::new(store.actor("two").await));
    for round in 0..ROUNDS {
        one.put(REPORT, HOURLY).await;
        store.advance(2 * SECOND).await;
        let old = tick(HOURLY, now(store).plus(SECOND / 2));
        store.advance(SECOND).await;

        let (ticked, _) = race(&one, &other, &old, round, Change::Replace).await;

        let jobs = drain(&one).await.len();
        assert_eq!(jobs, pushed(std::slice::from_ref(&ticked)), "R28: {ticked:?}");
        let report = one.report().await;
        assert_eq!((&report.definition[..], report.last_tick), (DAILY, now(store)));
        store.advance(SECOND).await;
        let late = one.tick(&tick(HOURLY, now(store)), "late").await;
        assert_eq!(late, Ticked::Changed);
    }
}

case!(a_tick_races_a_removal: R28 => Schedules);
/// A tick and a removal of its schedule at the same moment: the job is pushed before the
/// removal, or not at all. The tick does not bring the schedule back.
async fn a_tick_races_a_removal(store: &Store) {
    store.stop_clock();
    let (one, other) = (store.actor("one").await, Arc::new(store.actor("two").await));
    for round in 0..ROUNDS {
        one.put(REPORT, HOURLY).await;
        store.advance(SECOND).await;
        let last = tick(HOURLY, now(store));

        let (ticked, was_there) =
            race(&one, &other, &last, round, Change::Remove).await;

        assert!(was_there, "R28: the schedule was removed");
        let jobs = drain(&one).await.len();
        assert_eq!(jobs, pushed(std::slice::from_ref(&ticked)), "R28: {ticked:?}");
        assert_eq!(one.found().await.schedules, [], "R28: it is removed");
        assert_eq!(one.tick(&last, "late").await, Ticked::Changed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Replace,
    Remove,
}

/// Pushes the tick by `one` while `other` changes the schedule. The two begin in turn.
/// Returns the answer of the tick, and whether the other call found the schedule.
async fn race(
    one: &Actor,
    other: &Arc<Actor>,
    tick: &Tick,
    round: u32,
    change: Change,
) -> (Ticked, bool) {
    let other = Arc::clone(other);
    let changing = async move {
        let scheduler = other.scheduler();
        match change {
            Change::Replace => {
                scheduler.put_schedule(&name(REPORT), DAILY).await.map(|_| true)
            }
            Change::Remove => scheduler.remove_schedule(&name(REPORT)).await,
        }
    };
    let ticking = one.tick(tick, "job");
    let (ticked, changed) = if round.is_multiple_of(2) {
        tokio::join!(ticking, changing)
    } else {
        let (changed, ticked) = tokio::join!(changing, ticking);
        (ticked, changed)
    };
    let is_known = matches!(
        ticked,
        Ticked::Pushed(Pushed::Stored(_)) | Ticked::Changed | Ticked::NotLater
    );
    assert!(is_known, "R28: {ticked:?}");
    (ticked, changed.expect("the call is answered"))
}
