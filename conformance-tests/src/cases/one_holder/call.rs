//! A call with several settlements carries out each of them by its own receipt (R7).

use relq_core::{Disposition, Settlement, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        checks::{
            dead, delivers, every_disposition, expect_exactly, numbered, retry_after,
            settle_all,
        },
        store::Store,
        times::HELD,
    },
};

case!(a_receipt_counts_once_in_a_call: R7);
/// If one call names the same receipt with two dispositions, one of them is carried
/// out.
async fn a_receipt_counts_once_in_a_call(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let said = [dead("no"), Disposition::Done]
        .map(|disposition| Settlement::new(held.receipt.clone(), disposition));

    let settled = actor.settle(&said).await.expect("answered");

    expect_exactly(settled.iter().map(|one| *one == Settled::Applied), [false, true]);
    let stats = actor.figures().await;
    let (buried, done) =
        (settled[0] == Settled::Applied, settled[1] == Settled::Applied);
    assert_eq!((stats.dead, stats.finished), (buried.into(), done.into()));
}

case!(a_stale_receipt_spoils_no_other: R7);
/// If one settlement of a call has a lost lease, at any position, the other settlements
/// are carried out, whatever they say.
async fn a_stale_receipt_spoils_no_other(store: &Store) {
    let (lost, applied) = (Settled::LeaseLost, Settled::Applied);
    let actor = store.actor("worker").await;
    for said in every_disposition(HELD) {
        actor.store(numbered(6)).await;
        let held = actor.take(6).await;
        actor.finish(&held[0]).await;
        actor.finish(&held[3]).await;
        actor.finish(&held[5]).await;
        let before = actor.figures().await;

        let settled = settle_all(&actor, &held, &said).await;

        let expected = [lost, applied, applied, lost, applied, lost];
        assert_eq!(settled, expected, "R7: {said:?}");
        let after = actor.figures().await;
        let ended = match said {
            Disposition::Done => after.finished - before.finished,
            Disposition::Discard => after.discarded - before.discarded,
            _ => after.unfinished() + after.dead,
        };
        assert_eq!((ended, after.leased), (3, 0), "R7: {said:?}");
        actor.purge().await.expect("purged");
    }
}

case!(one_call_answers_for_jobs_of_several_workers: R7);
/// One call settles the jobs of three workers, in turn. Two of the workers have each lost a
/// lease. Each answer is that of its own receipt, with every disposition.
async fn one_call_answers_for_jobs_of_several_workers(store: &Store) {
    const LOST: [usize; 2] = [1, 5];
    let actor = store.actor("first").await;
    let workers = ["first", "second", "third"].map(|name| actor.acting_as(name));
    for disposition in every_disposition(HELD) {
        actor.store(numbered(6)).await;
        let mut held = Vec::new();
        for at in 0..6 {
            held.push(workers[at % workers.len()].take_one().await);
        }
        for at in LOST {
            actor.finish(&held[at]).await;
        }

        let settled = settle_all(&actor, &held, &disposition).await;

        let lost = settled.iter().enumerate();
        let lost = lost.filter(|(_, one)| **one == Settled::LeaseLost);
        let lost: Vec<_> = lost.map(|(at, _)| at).collect();
        assert_eq!(lost, LOST, "R7: the lost leases of a call with {disposition:?}");
        let leased = actor.figures().await.leased;
        assert_eq!(leased, 0, "R7: all others are settled with {disposition:?}");
        actor.purge().await.expect("purged");
    }
}

case!(one_call_carries_every_disposition: R7);
/// One call may give each job a different disposition.
async fn one_call_carries_every_disposition(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(5)).await;
    let held = actor.take(5).await;
    let dispositions = [
        Disposition::Done,
        retry_after(HELD),
        dead("no"),
        Disposition::Discard,
        Disposition::GiveBack,
    ];
    let said: Vec<_> = held
        .iter()
        .zip(dispositions)
        .map(|(one, disposition)| Settlement::new(one.receipt.clone(), disposition))
        .collect();

    let settled = actor.settle(&said).await.expect("answered");

    assert_eq!(settled, [Settled::Applied; 5]);
    let stats = actor.figures().await;
    assert_eq!((stats.finished, stats.scheduled, stats.dead), (1, 1, 1));
    assert_eq!((stats.discarded, stats.ready, stats.leased), (1, 1, 0));
    delivers(&actor, [held[4].payload.clone()]).await;
}
