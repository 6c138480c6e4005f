//! Settling and claiming in one call (R7, R8).

use std::time::Duration;

use queue_core::{Settled, Settlement, Verdict};

use crate::{
    checks::{numbered, payloads},
    one_holder::{Lost, lose_and_retake},
    store::{Store, WOKEN},
};

/// R7, R8: settling and claiming in one call does both.
pub(crate) async fn a_turn_settles_and_claims(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(5)).await;
    let held = actor.take(2).await;
    let done: Vec<_> = held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), Verdict::Done))
        .collect();

    let turn = actor.turn(&done, &actor.ask(2)).await;

    assert_eq!(turn.settled.expect("answered"), [Settled::Applied; 2]);
    let claimed = turn.claimed.expect("answered");
    assert_eq!(actor.figures().await.finished, 2);
    assert_eq!(actor.figures().await.leased, 2);
    actor.finish(&claimed[0]).await;
    actor.finish(&claimed[1]).await;
}

/// R7: a lost lease in a turn spoils neither the others nor the claim.
pub(crate) async fn a_turn_with_a_stale_receipt_goes_on(store: &Store) {
    let Lost { actor, stale, current } = lose_and_retake(store).await;
    actor.store_one("next").await;
    let done = [&stale, &current]
        .map(|one| Settlement::new(one.receipt.clone(), Verdict::Done));

    let turn = actor.turn(&done, &actor.ask(1)).await;

    assert_eq!(turn.settled.expect("answered"), [Settled::LeaseLost, Settled::Applied]);
    assert_eq!(payloads(&turn.claimed.expect("answered")), ["next"]);
}

/// R7: a turn may claim what it gave back.
pub(crate) async fn a_turn_settles_before_it_claims(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let back = [Settlement::new(held.receipt.clone(), Verdict::GiveBack)];

    let turn = actor.turn(&back, &actor.ask(1)).await;

    let claimed = turn.claimed.expect("answered");
    assert_eq!(claimed.len(), 1);
    assert_ne!(claimed[0].receipt, held.receipt);
    actor.finish(&claimed[0]).await;
}

/// R21: a turn never waits.
pub(crate) async fn a_turn_never_waits(store: &Store) {
    let actor = store.actor("worker").await;
    let patient = actor.ask(1).wait(Duration::from_secs(60));

    let (turn, _) = store.within(WOKEN, actor.turn(&[], &patient)).await;

    assert_eq!(turn.claimed.expect("answered"), []);
    assert_eq!(turn.settled.expect("answered"), []);
}
