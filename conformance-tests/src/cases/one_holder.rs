//! A job has one holder, and only the holder can settle it (R6 to R8).

use std::collections::BTreeSet;

use bytes::Bytes;
use relq_core::{Delivery, Disposition, NewJob, Receipt, Settlement, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, eventually, expect_exactly, numbered, payloads,
            retry_after, settle_all,
        },
        store::Store,
        times::HELD,
    },
};

/// A job whose lease expired, and which the same worker then claimed again. It comes
/// with the old and the current delivery.
pub(crate) struct Lost {
    pub(crate) actor: Actor,
    pub(crate) stale: Delivery,
    pub(crate) current: Delivery,
}

pub(crate) async fn lose_and_retake(store: &Store) -> Lost {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let current = actor.take_one().await;
    Lost { actor, stale, current }
}

async fn changes_nothing(store: &Store, disposition: Disposition) {
    let Lost { actor, stale, current } = lose_and_retake(store).await;

    let settled = actor.say(&stale, disposition).await;

    assert_eq!(settled, Settled::LeaseLost, "R7: a settlement by an old receipt");
    let stats = actor.figures().await;
    assert_eq!(
        (stats.leased, stats.unfinished(), stats.dead),
        (1, 1, 0),
        "R7: the job is still leased: {stats:?}"
    );
    assert_eq!(stats.finished + stats.discarded, 0, "R7: the job ended: {stats:?}");
    actor.finish(&current).await;
}

case!(late_ack_changes_nothing: R7, real_time);
/// An ack with the receipt of an earlier lease is refused and does not end the new
/// lease.
async fn late_ack_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::Done).await;
}

case!(late_retry_changes_nothing: R7);
/// A retry with the receipt of an earlier lease is refused and does not delay the job.
async fn late_retry_changes_nothing(store: &Store) {
    changes_nothing(store, retry_after(HELD)).await;
}

case!(late_burial_changes_nothing: R7);
/// A burial with the receipt of an earlier lease is refused, and the job stays leased.
async fn late_burial_changes_nothing(store: &Store) {
    changes_nothing(store, dead("late")).await;
}

case!(late_discard_changes_nothing: R7);
/// A discard with the receipt of an earlier lease is refused, and the job stays leased.
async fn late_discard_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::Discard).await;
}

case!(late_give_back_changes_nothing: R7);
/// A give-back with the receipt of an earlier lease is refused, and the job stays
/// leased.
async fn late_give_back_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::GiveBack).await;
}

case!(late_ack_of_a_ready_job_changes_nothing: R7);
/// A late ack is refused while the job is ready again and not yet claimed.
async fn late_ack_of_a_ready_job_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    assert_eq!(actor.say(&stale, Disposition::Done).await, Settled::LeaseLost);

    delivers(&actor, ["job"]).await;
}

case!(a_given_back_receipt_is_stale: R7);
/// A receipt becomes stale when its job is given back, even if the next lease has the
/// same worker, job and attempt number.
async fn a_given_back_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one().await;
    actor.say(&stale, Disposition::GiveBack).await;
    let current = actor.take_one().await;
    assert_eq!(current.attempt(), stale.attempt());

    assert_eq!(actor.say(&stale, Disposition::Done).await, Settled::LeaseLost);

    assert_ne!(current.receipt, stale.receipt);
    actor.finish(&current).await;
}

case!(a_receipt_is_stale_after_release: R7);
/// A receipt is stale once its worker was released.
async fn a_receipt_is_stale_after_release(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    let current = actor.take_one().await;

    assert_eq!(actor.say(&stale, dead("late")).await, Settled::LeaseLost);

    actor.finish(&current).await;
}

case!(a_retried_receipt_is_stale: R7);
/// A receipt is stale after a retry.
async fn a_retried_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.figures().await.scheduled, 1);
}

case!(a_buried_receipt_is_stale: R7);
/// The old receipt of a buried job cannot finish the job.
async fn a_buried_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.the_dead_one().await.payload, "job");
}

case!(a_second_ack_is_lost: R7);
/// A second ack is refused and not counted.
async fn a_second_ack_is_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.finish(&held).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.figures().await.finished, 1);
}

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
/// are carried out.
async fn a_stale_receipt_spoils_no_other(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(6)).await;
    let held = actor.take(6).await;
    actor.finish(&held[0]).await;
    actor.finish(&held[3]).await;
    actor.finish(&held[5]).await;

    let settled = settle_all(&actor, &held, &Disposition::Done).await;

    let (lost, applied) = (Settled::LeaseLost, Settled::Applied);
    assert_eq!(settled, [lost, applied, applied, lost, applied, lost]);
    assert_eq!(actor.figures().await.finished, 6);
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

case!(forged_receipts_are_lost: R7);
/// A settlement with a forged receipt returns `LeaseLost`, not an error, and changes
/// nothing.
async fn forged_receipts_are_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let tokens: [&'static [u8]; 7] =
        [b"", b"0", b"1", b"-1", b"\0\xff*{}", b"9223372036854775808", &[b'x'; 4096]];
    let said: Vec<_> = tokens
        .into_iter()
        .map(|token| Receipt::new(held.job().clone(), 1, Bytes::from_static(token)))
        .map(|receipt| Settlement::new(receipt, Disposition::Done))
        .collect();

    let settled = actor.settle(&said).await.expect("answered");

    assert_eq!(settled, [Settled::LeaseLost; 7]);
    actor.finish(&held).await;
}

case!(a_held_job_is_not_given_again: R6);
/// A leased job is given neither to another worker nor to its holder again.
async fn a_held_job_is_not_given_again(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    first.store_one("job").await;
    let held = first.take_one().await;

    second.recover_all().await;

    assert_eq!(second.take(10).await, []);
    assert_eq!(first.take(10).await, []);
    first.finish(&held).await;
}

case!(a_held_job_holds_up_nobody: R6 R9);
/// A leased job does not delay the jobs before or after it.
async fn a_held_job_holds_up_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["1", "2"]).await;
    let held = actor.take_one().await;
    actor.store_one("3").await;

    let served = payloads(&drain(&actor).await).into_iter();

    let all = ["1", "2", "3"].map(Bytes::from);
    expect_exactly(served.chain([held.payload]), all);
}

case!(racing_workers_share_the_jobs: R6, real_time);
/// Several workers claim at the same time, and each job is delivered to exactly one of
/// them.
async fn racing_workers_share_the_jobs(store: &Store) {
    store.actor("producer").await.store(numbered(600)).await;
    let mut workers = Vec::new();
    for index in 0..8 {
        let actor = store.actor(&format!("w{index}")).await;
        workers.push(tokio::spawn(async move { take_all(&actor).await }));
    }

    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(worker.await.expect("the worker ends"));
    }

    let tokens: BTreeSet<_> =
        taken.iter().map(|one| one.receipt.token().clone()).collect();
    assert_eq!(tokens.len(), 600, "each lease has a receipt of its own");
    expect_exactly(payloads(&taken), numbered(600));
}

async fn take_all(actor: &Actor) -> Vec<Delivery> {
    let mut all = Vec::new();
    loop {
        let taken = actor.take(7).await;
        if taken.is_empty() {
            return all;
        }
        settle_all(actor, &taken, &Disposition::Done).await;
        all.extend(taken);
    }
}

case!(tasks_may_share_a_connection: R6);
/// When many tasks share one connection, each gets the replies to its own calls.
async fn tasks_may_share_a_connection(store: &Store) {
    let actor = store.actor("worker").await;
    let mut tasks = Vec::new();
    for index in 0..32 {
        let own = actor.acting_as(&format!("w{index}"));
        tasks.push(tokio::spawn(async move {
            own.store_one(format!("job {index}")).await;
            // A queue of several parts is asked part by part. Meanwhile other tasks may
            // take the jobs of the next part, and push theirs to one already asked.
            let claim = || async { own.take(1).await.pop() };
            let held = eventually("a job for the task", claim).await;
            own.finish(&held).await;
            held.payload
        }));
    }

    let mut worked = Vec::new();
    for task in tasks {
        worked.push(task.await.expect("the task ends"));
    }

    expect_exactly(worked, numbered(32));
    assert_eq!(actor.figures().await.finished, 32);
}

case!(racing_acks_of_a_receipt_count_once: R6);
/// Several settlements with the same receipt run at the same time, and one of them is
/// carried out.
async fn racing_acks_of_a_receipt_count_once(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let mut acks = Vec::new();
    for index in 0..8 {
        let (other, held) = (store.actor(&format!("w{index}")).await, held.clone());
        acks.push(tokio::spawn(
            async move { other.say(&held, Disposition::Done).await },
        ));
    }

    let mut answers = Vec::new();
    for ack in acks {
        answers.push(ack.await.expect("the ack ends"));
    }

    let applied = answers.iter().filter(|one| **one == Settled::Applied).count();
    assert_eq!(applied, 1, "{answers:?}");
    assert_eq!(actor.figures().await.finished, 1);
}

case!(an_overdue_ack_is_applied_or_lost: R7);
/// An ack that comes after the lease has expired and before a recovery either ends the
/// job or returns `LeaseLost` and changes nothing.
async fn an_overdue_ack_is_applied_or_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let settled = actor.say(&held, Disposition::Done).await;

    actor.recover_all().await;
    let again = drain(&actor).await.len();
    let applied = usize::from(settled == Settled::Applied);
    assert_eq!(applied + again, 1, "{settled:?}, and then delivered {again} times");
    assert_eq!(actor.figures().await.finished, 1);
}

case!(acks_racing_recovery_split_cleanly: R7);
/// Each ack that races with the recovery of its job either ends the job or returns
/// `LeaseLost`.
async fn acks_racing_recovery_split_cleanly(store: &Store) {
    let (worker, reaper) = (store.actor("worker").await, store.actor("reaper").await);
    worker.store(numbered(100)).await;
    let held = worker.take_briefly(100).await;
    store.outlast_brief_leases().await;
    let reaping = tokio::spawn(async move { reaper.recover_all().await });

    let settled = settle_all(&worker, &held, &Disposition::Done).await;

    reaping.await.expect("the recovery ends");
    worker.recover_all().await;
    let applied = settled.iter().filter(|one| **one == Settled::Applied).count();
    assert_eq!(drain(&worker).await.len(), 100 - applied);
    assert_eq!(worker.figures().await.finished, 100);
}

case!(a_finished_job_stays_gone: R8);
/// A finished job does not return when its lease would have expired and a recovery
/// runs.
async fn a_finished_job_stays_gone(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    actor.say(&held, Disposition::Discard).await;
    actor.store_one("next").await;
    let held = actor.take_one().await;
    actor.finish(&held).await;
    store.outlast_brief_leases().await;

    let recovered = actor.recover_all().await;

    assert_eq!((recovered.requeued, recovered.buried), (0, 0));
    assert_eq!(actor.take(10).await, []);
}

case!(another_handle_shares_the_queue: R7);
/// A second handle of the same queue can settle jobs that the first claimed.
async fn another_handle_shares_the_queue(store: &Store) {
    let actor = store.actor("worker").await;
    let another = actor.open_another().await.expect("another handle opens");
    actor.store_one("job").await;
    let held = another.claim(&actor.ask(1)).await.expect("answered").remove(0);

    actor.finish(&held).await;

    drop(actor);
    let stranger = store.actor("stranger").await;
    another.push(&[NewJob::new("by the other handle")], None).await.expect("taken");
    let seen =
        eventually("the other handle's job", || async { stranger.take(1).await.pop() });
    assert_eq!(seen.await.payload, "by the other handle");
}
