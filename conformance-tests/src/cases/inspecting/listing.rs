//! Listings newest first, of a queue at rest (R31).

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;
use relq_core::{
    Disposition, Error, NewJob,
    batch::{BatchId, NewBatch},
    capabilities::Capability,
    operator::{JobState, PeekRequest},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, expect_exactly, id, listed, numbered, postpone, settle_all},
        store::Store,
        times::HELD,
    },
    spec::operation::STATES,
};

/// Asserts that pages of any size list the jobs of a state in the same order, and newest
/// first in the reverse one.
async fn assert_orders(actor: &Actor, state: JobState) {
    let served = actor.list(state, 1000).await;
    let newest: Vec<_> = served.iter().rev().cloned().collect();
    for limit in [1, 2, 3, 1000] {
        let pages = format!("{} jobs, pages of {limit}", state.as_str());
        let seen = actor.list(state, limit).await;
        assert_eq!(listed(&seen), listed(&served), "R23: {pages}, as served");
        assert_eq!(seen, served, "R23: {pages}, as served");
        let seen = actor.list_newest(state, limit).await;
        assert_eq!(listed(&seen), listed(&newest), "R31: {pages}, newest first");
        assert_eq!(seen, newest, "R31: {pages}, newest first");
    }
}

case!(newest_first_is_the_reverse: R31 R23 => Inspect Delay);
/// A listing newest first is the reverse of the listing as served, in each state and with
/// pages of any size. Ready jobs that were given back are listed without those that were
/// claimed with them.
async fn newest_first_is_the_reverse(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(14)).await;
    let held = actor.take(9).await;
    for one in &held[..3] {
        actor.say(one, dead("no")).await;
    }
    for one in [&held[3], &held[5]] {
        actor.say(one, Disposition::GiveBack).await;
    }
    for minutes in [30, 10, 20, 40] {
        let delay = Duration::from_secs(minutes * 60);
        actor.store_one(NewJob::new(minutes.to_string()).delay(delay)).await;
    }

    for state in STATES {
        assert_orders(&actor, state).await;
    }
    let newest = listed(&actor.list_newest(JobState::Scheduled, 2).await);
    assert_eq!(newest, ["40", "30", "20", "10"], "R31: the last due is the newest");
}

case!(pieces_are_listed_over_pages: R31 R23 B1 => Inspect Batches);
/// Ready pieces of several batches, beside leased ones, and beside plain jobs that came
/// before and after them. Pages of any size show each ready job once, in the same order,
/// and newest first in the reverse one.
async fn pieces_are_listed_over_pages(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(2)).await;
    for name in ["a", "b", "c"] {
        let batch = BatchId::new(name).expect("a valid id");
        actor.make(&NewBatch::new(batch.clone())).await;
        actor.fill(&batch, numbered(4)).await;
    }
    actor.store(numbered(2)).await;
    let held = actor.take(10).await;
    for one in held.iter().step_by(2) {
        actor.say(one, Disposition::GiveBack).await;
    }

    let ready = actor.list(JobState::Ready, 1000).await;
    assert_eq!(ready.len(), 11, "R23: the ready jobs");
    assert_orders(&actor, JobState::Ready).await;
}

case!(newest_first_begins_with_the_last_served: R31 R15 => Inspect Priority);
/// The first ready job of a listing newest first is the one that is served last: the
/// newest of the lowest priority. A given-back job is listed where it is served.
async fn newest_first_begins_with_the_last_served(store: &Store) {
    let actor = store.actor("operator").await;
    let levels: Vec<_> = actor.class().levels().collect();
    for round in 0..3 {
        for level in &levels {
            let name = format!("{level} {round}");
            actor.store_one(NewJob::new(name).priority(*level)).await;
        }
    }
    actor.take(5).await;
    actor.release_worker(actor.worker()).await.expect("answered");

    assert_orders(&actor, JobState::Ready).await;

    let last = actor.list_newest(JobState::Ready, 1).await.remove(0);
    let name = format!("{} 2", actor.class().least_urgent());
    assert_eq!(last.payload, name, "R31: the job that is served last");
}

case!(pieces_are_listed_newest_first: R31 B4 => Inspect Batches);
/// Pieces are listed newest first, too, and before the jobs without a batch.
async fn pieces_are_listed_newest_first(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(4)).await;
    for name in ["one", "two"] {
        let batch = BatchId::new(name).expect("a valid id");
        actor.make(&NewBatch::new(batch.clone())).await;
        actor.fill(&batch, (0..4).map(|at| format!("{name} {at}"))).await;
    }

    assert_orders(&actor, JobState::Ready).await;
}

case!(held_jobs_are_listed_over_pages: R31 R30 => Inspect Followers ClientIds Delay);
/// The pages of a listing newest first show each held job once, and before those with a
/// due time.
async fn held_jobs_are_listed_over_pages(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    actor.store_one(NewJob::new("due").delay(HELD)).await;
    actor
        .store(numbered(23).into_iter().map(|one| NewJob::new(one).after(id("leader"))))
        .await;

    assert_orders(&actor, JobState::Scheduled).await;

    let seen = listed(&actor.list_newest(JobState::Scheduled, 5).await);
    expect_exactly(seen[..23].to_vec(), numbered(23));
    assert_eq!(seen[23..], ["due"], "R31: behind the held jobs");
}

case!(equal_times_are_listed_over_pages: R31 => Inspect Delay);
/// If many jobs are due, leased or buried in one millisecond, the pages show each of them
/// once, in both orders.
async fn equal_times_are_listed_over_pages(store: &Store) {
    let actor = store.actor("operator").await;
    store.stop_clock();
    actor.store(numbered(100)).await;
    settle_all(&actor, &actor.take(50).await, &dead("no")).await;
    actor.take(50).await;
    actor.store(numbered(50).into_iter().map(|one| NewJob::new(one).delay(HELD))).await;

    for state in [JobState::Scheduled, JobState::Leased, JobState::Dead] {
        let seen = listed(&actor.list(state, 7).await);
        let newest = listed(&actor.list_newest(state, 7).await);
        assert_eq!(seen.len(), 50, "R31: {} jobs as served", state.as_str());
        expect_exactly(newest, seen);
    }
}

case!(jobs_scheduled_in_any_way_are_listed_over_pages: R31 => Inspect Delay);
/// The pages show each job that is due at one moment once, in both orders, whatever made it
/// wait: a push, a retry, a postponement or the end of its leader.
async fn jobs_scheduled_in_any_way_are_listed_over_pages(store: &Store) {
    const OF_EACH: usize = 7;
    let actor = store.actor("operator").await;
    store.stop_clock();
    let payloads = |of: &str| -> Vec<Bytes> {
        (0..OF_EACH).map(|it| Bytes::from(format!("{of} {it}"))).collect()
    };
    let mut expected: Vec<_> =
        ["pushed", "retried", "postponed"].map(payloads).concat();
    actor.store(payloads("retried")).await;
    let after = Disposition::Retry { after: HELD, error: "no".to_owned() };
    settle_all(&actor, &actor.take(100).await, &after).await;
    actor.store(payloads("postponed")).await;
    settle_all(&actor, &actor.take(100).await, &postpone(HELD)).await;
    actor
        .store(payloads("pushed").into_iter().map(|it| NewJob::new(it).delay(HELD)))
        .await;
    if actor.capabilities().supports(Capability::Followers) {
        actor.store_one(NewJob::new("leader").id(id("leader"))).await;
        let following = payloads("released").into_iter();
        let following =
            following.map(|it| NewJob::new(it).after(id("leader")).delay(HELD));
        actor.store(following).await;
        actor.finish(&actor.take_one().await).await;
        expected.extend(payloads("released"));
    }

    for pages_of in [1, 3, 100] {
        let served = listed(&actor.list(JobState::Scheduled, pages_of).await);
        let newest = listed(&actor.list_newest(JobState::Scheduled, pages_of).await);
        expect_exactly(served.clone(), expected.clone());
        assert_eq!(newest, served.into_iter().rev().collect::<Vec<_>>(), "R31");
    }
}

case!(a_cursor_of_the_other_order_is_refused: R31 => Inspect Delay);
/// A cursor of one order is refused by the other one.
async fn a_cursor_of_the_other_order_is_refused(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(6)).await;
    settle_all(&actor, &actor.take(2).await, &dead("no")).await;
    actor.take(2).await;
    actor.store(numbered(2).into_iter().map(|one| NewJob::new(one).delay(HELD))).await;

    for state in STATES {
        let served = PeekRequest::new(state, NonZeroU32::MIN);
        let newest = served.clone().newest_first();
        for (first, second) in [(&served, &newest), (&newest, &served)] {
            let page = actor.peek(first).await.expect("answered");
            let cursor = page.next.expect("R31: two jobs need two pages of one");
            let refused = actor.peek(&second.clone().after(cursor)).await;
            let is_invalid = matches!(refused, Err(Error::Invalid { .. }));
            assert!(is_invalid, "R31: {}: {refused:?}", state.as_str());
        }
    }
}
