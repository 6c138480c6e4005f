//! A caller may drop the future of a call at any moment, and loses no job by it (R22).

use std::{num::NonZeroU32, time::Duration};

use relq_core::{Disposition, NewJob, Settlement};
use tokio::time::timeout;

use crate::{
    cases::case,
    harness::{
        checks::{drain, expect_exactly, leased_at_rest, numbered, payloads},
        store::Store,
        times::HELD,
    },
};

/// Returns the delays after which a case drops a call. They range from the call's first
/// poll until well after its reply.
pub(super) fn moments() -> impl Iterator<Item = Duration> {
    (0..60).map(|step| Duration::from_micros(step * 25))
}

case!(a_dropped_waiter_takes_nothing: R22);
/// A waiting claim that was dropped takes no job afterwards.
async fn a_dropped_waiter_takes_nothing(store: &Store) {
    let (gone, other) = (store.actor("w1").await, store.actor("w2").await);
    let waited = timeout(Duration::from_millis(150), gone.take_within(1, HELD)).await;
    assert!(waited.is_err(), "nothing was ready");

    other.store_one("job").await;

    let taken = other.take_within(1, Duration::from_secs(5)).await;
    assert_eq!(payloads(&taken), ["job"]);
}

case!(dropped_claims_lose_nothing: R22);
/// Claims dropped at any moment lose nothing.
async fn dropped_claims_lose_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(60)).await;

    for moment in moments() {
        let _ = timeout(moment, actor.take(1)).await;
    }

    let other = store.actor("other").await;
    leased_at_rest(&actor).await;
    other.release_worker(actor.worker()).await.expect("answered");
    expect_exactly(payloads(&drain(&other).await), numbered(60));
}

case!(dropped_pushes_are_whole_or_not: R22 R5);
/// A dropped push stores all of its jobs or none.
async fn dropped_pushes_are_whole_or_not(store: &Store) {
    let actor = store.actor("producer").await;

    for (call, moment) in moments().enumerate() {
        let jobs: Vec<_> =
            (0..10).map(|_| NewJob::new(format!("call {call}"))).collect();
        let _ = timeout(moment, actor.push(&jobs, None)).await;
    }
    actor.store_one("the last").await;

    let mut found = payloads(&drain(&store.actor("other").await).await);
    found.retain(|payload| payload != "the last");
    for call in 0..60 {
        let name = format!("call {call}");
        let stored = found.iter().filter(|one| *one == name.as_bytes()).count();
        assert!(stored == 0 || stored == 10, "{stored} of 10 jobs of {name}");
    }
}

case!(a_dropped_push_takes_no_other_with_it: R22 R1);
/// Several pushes run at the same time, and one is dropped. The others succeed, even if
/// they share a command with the dropped one.
async fn a_dropped_push_takes_no_other_with_it(store: &Store) {
    let actor = store.actor("producer").await;
    let mut names = Vec::new();

    for (round, moment) in moments().enumerate() {
        let kept = ["a", "b", "c"].map(|name| format!("{round} {name}"));
        let [a, b, c] = kept.clone().map(|name| actor.store_one(name));
        let gone = || timeout(moment, actor.offer("gone"));
        let _ = tokio::join!(a, gone(), b, gone(), c);
        names.extend(kept);
    }

    let mut found = payloads(&drain(&store.actor("other").await).await);
    found.retain(|payload| payload != "gone");
    expect_exactly(found, names.into_iter().map(bytes::Bytes::from));
}

case!(dropped_settlements_are_carried_out_or_not: R22 R8);
/// A settlement whose future is dropped at any moment is carried out fully or not at
/// all.
async fn dropped_settlements_are_carried_out_or_not(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(60)).await;
    let held = actor.take(60).await;

    for (held, moment) in held.iter().zip(moments()) {
        let done = [Settlement::new(held.receipt.clone(), Disposition::Done)];
        let _ = timeout(moment, actor.settle(&done)).await;
    }

    leased_at_rest(&actor).await;
    for held in &held {
        actor.say(held, Disposition::Done).await;
    }
    assert_eq!(actor.figures().await.finished, 60);
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(dropped_recoveries_lose_nothing: R22 R12);
/// Recoveries dropped at any moment neither lose nor duplicate jobs.
async fn dropped_recoveries_lose_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(60)).await;
    actor.take_briefly(60).await;
    store.outlast_brief_leases().await;

    for moment in moments() {
        let _ = timeout(moment, actor.recover(NonZeroU32::MIN)).await;
    }

    let reaper = store.actor("reaper").await;
    reaper.recover_all().await;
    let again = drain(&reaper).await;
    assert!(again.iter().all(|one| one.attempt() == 2), "each requeued once");
    expect_exactly(payloads(&again), numbered(60));
}

case!(dropped_settle_and_claims_lose_nothing: R22);
/// If `settle_and_claim` is dropped at any moment, no job is lost and none is finished
/// twice.
async fn dropped_settle_and_claims_lose_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(120)).await;

    for moment in moments() {
        let held = actor.take_one().await;
        let done = [Settlement::new(held.receipt.clone(), Disposition::Done)];
        let _ = timeout(moment, actor.settle_and_claim(&done, &actor.ask(1))).await;
        actor.settle(&done).await.expect("answered");
        actor.release_worker(actor.worker()).await.expect("answered");
    }

    let other = store.actor("other").await;
    other.release_worker(actor.worker()).await.expect("answered");
    drain(&other).await;
    assert_eq!(other.figures().await.finished, 120);
}
