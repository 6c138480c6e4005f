//! Tests of `settle_and_claim`, which settles jobs and claims others in one call (R7,
//! R8).

use std::time::Duration;

use relq_core::{Disposition, Settlement, Stats, outcome::Settled};

use crate::{
    cases::case,
    cases::one_holder::stale::{Lost, lose_and_retake},
    harness::{
        checks::{every_disposition, numbered, payloads},
        store::Store,
        times::HELD,
    },
};

/// The counters that a settlement may change, by their names.
fn counters(stats: &Stats) -> [(&'static str, u64); 6] {
    [
        ("ready", stats.ready),
        ("scheduled", stats.scheduled),
        ("leased", stats.leased),
        ("dead", stats.dead),
        ("finished", stats.finished),
        ("discarded", stats.discarded),
    ]
}

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

case!(each_disposition_is_counted_as_what_it_is: R7 R23);
/// Two jobs are settled alike, in each of the ways: by a call that also claims, and by one that
/// does not. The counters change as this disposition says.
async fn each_disposition_is_counted_as_what_it_is(store: &Store) {
    let actor = store.actor("worker").await;
    for (disposition, claims) in every_disposition(HELD)
        .into_iter()
        .flat_map(|it| [(it.clone(), true), (it, false)])
    {
        actor.store(numbered(2)).await;
        let held = actor.take(2).await;
        let mut expected = counters(&actor.figures().await);
        let settled: Vec<_> = held
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), disposition.clone()))
            .collect();

        let settled = match claims {
            true => actor.settle_and_claim(&settled, &actor.ask(2)).await.settled,
            false => actor.settle(&settled).await,
        };

        let becomes = match disposition {
            Disposition::Done => "finished",
            Disposition::Discard => "discarded",
            Disposition::Dead { .. } => "dead",
            // The claim of the same call has leased the jobs again.
            Disposition::GiveBack if claims => "leased",
            Disposition::GiveBack => "ready",
            _ => "scheduled",
        };
        for (name, count) in &mut expected {
            *count += if *name == becomes { 2 } else { 0 };
            *count -= if *name == "leased" { 2 } else { 0 };
        }
        assert_eq!(settled.expect("answered"), [Settled::Applied; 2]);
        let counted = counters(&actor.figures().await);
        let how = if claims { "settle_and_claim" } else { "settle" };
        assert_eq!(
            counted, expected,
            "R23: the counters after {how} of {disposition:?}"
        );
        actor.purge().await.expect("purged");
    }
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
