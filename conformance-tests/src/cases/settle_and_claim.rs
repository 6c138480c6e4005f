//! Tests of `settle_and_claim`, which settles jobs and claims others in one call (R7,
//! R8).

use std::time::Duration;

use relq_core::{Disposition, Settlement, outcome::Settled};

use crate::{
    cases::case,
    cases::one_holder::stale::{Lost, lose_and_retake},
    harness::{
        checks::{numbered, payloads},
        store::Store,
    },
};

case!(one_call_does_both: R7 R8);
/// `settle_and_claim` settles the named job and claims a new one.
async fn one_call_does_both(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(5)).await;
    let held = actor.take(2).await;
    let done: Vec<_> = held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done))
        .collect();

    let both = actor.settle_and_claim(&done, &actor.ask(2)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::Applied; 2]);
    let claimed = both.claimed.expect("answered");
    assert_eq!(actor.figures().await.finished, 2);
    assert_eq!(actor.figures().await.leased, 2);
    actor.finish(&claimed[0]).await;
    actor.finish(&claimed[1]).await;
}

case!(a_stale_receipt_stops_no_claim: R7);
/// A lost lease in `settle_and_claim` affects neither the other settlements nor the
/// claim.
async fn a_stale_receipt_stops_no_claim(store: &Store) {
    let Lost { actor, stale, current } = lose_and_retake(store).await;
    actor.store_one("next").await;
    let done = [&stale, &current]
        .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done));

    let both = actor.settle_and_claim(&done, &actor.ask(1)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::LeaseLost, Settled::Applied]);
    assert_eq!(payloads(&both.claimed.expect("answered")), ["next"]);
}

case!(the_settlement_comes_first: R7);
/// `settle_and_claim` settles first: it may claim a job that it just gave back.
async fn the_settlement_comes_first(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let back = [Settlement::new(held.receipt.clone(), Disposition::GiveBack)];

    let both = actor.settle_and_claim(&back, &actor.ask(1)).await;

    let claimed = both.claimed.expect("answered");
    assert_eq!(claimed.len(), 1);
    assert_ne!(claimed[0].receipt, held.receipt);
    actor.finish(&claimed[0]).await;
}

case!(the_claim_never_waits: R21);
/// `settle_and_claim` returns at once if no job is ready, even if its claim may wait.
async fn the_claim_never_waits(store: &Store) {
    let actor = store.actor("worker").await;
    let patient = actor.ask(1).wait(Duration::from_secs(60));

    let call = actor.settle_and_claim(&[], &patient);
    let (both, _) = store.within(store.response_limit(), call).await;

    assert_eq!(both.claimed.expect("answered"), []);
    assert_eq!(both.settled.expect("answered"), []);
}
