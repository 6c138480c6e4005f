//! A paused queue gives no job to a claim, and all other calls work (R23).

use relq_core::{
    Disposition, NewJob, Settlement,
    outcome::{Extended, Settled},
};

use crate::{
    cases::case,
    harness::{
        checks::{dead, delivers, drain, numbered},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(a_paused_queue_gives_nothing: R23);
/// A claim on a paused queue gets no job, and its result says that it is paused.
async fn a_paused_queue_gives_nothing(store: &Store) {
    let (operator, worker) = (store.actor("o").await, store.actor("w").await);
    worker.store_one("job").await;
    operator.pause().await.expect("answered");

    assert_eq!(worker.take(10).await, []);

    let stats = worker.figures().await;
    assert_eq!((stats.paused, stats.ready), (true, 1));
}

case!(settle_and_claim_respects_the_pause: R23);
/// On a paused queue, `settle_and_claim` carries out its settlement and claims no job.
async fn settle_and_claim_respects_the_pause(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(2)).await;
    let held = actor.take_one().await;
    actor.pause().await.expect("answered");
    let done = [Settlement::new(held.receipt, Disposition::Done)];

    let both = actor.settle_and_claim(&done, &actor.ask(1)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::Applied]);
    assert_eq!(both.claimed.expect("answered"), []);
}

case!(a_resumed_queue_goes_on: R23);
/// After a resume, claims get jobs again.
async fn a_resumed_queue_goes_on(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(3)).await;
    actor.pause().await.expect("answered");
    actor.resume().await.expect("answered");

    delivers(&actor, numbered(3)).await;

    assert!(!actor.figures().await.paused);
}

case!(pausing_twice_is_pausing_once: R23);
/// Pausing a paused queue and resuming a running one change nothing.
async fn pausing_twice_is_pausing_once(store: &Store) {
    let actor = store.actor("w").await;
    actor.resume().await.expect("answered");
    actor.pause().await.expect("answered");
    actor.pause().await.expect("answered");
    actor.resume().await.expect("answered");

    actor.store_one("job").await;

    assert_eq!(drain(&actor).await.len(), 1);
}

case!(a_paused_queue_works_otherwise: R23);
/// On a paused queue every call except a claim works as usual.
async fn a_paused_queue_works_otherwise(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store(numbered(4)).await;
    let held = actor.take(3).await;
    dying.take_briefly(1).await;
    actor.pause().await.expect("answered");

    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;
    let heard = actor.keep(&held[2], HELD).await;
    actor.store_one("more").await;
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 1);

    assert!(matches!(heard, Ok(Extended::Until(_))), "{heard:?}");
    let stats = actor.figures().await;
    assert_eq!((stats.finished, stats.dead, stats.leased, stats.ready), (1, 1, 1, 2));
}

case!(jobs_fall_due_in_a_pause: R23 R14 => Delay);
/// Jobs that fall due during a pause are delivered after it.
async fn jobs_fall_due_in_a_pause(store: &Store) {
    let actor = store.actor("w").await;
    actor.pause().await.expect("answered");
    actor.store_one(NewJob::new("job").delay(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, []);

    actor.resume().await.expect("answered");

    delivers(&actor, ["job"]).await;
}
