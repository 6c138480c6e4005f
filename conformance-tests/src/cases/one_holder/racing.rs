//! Claims, settlements and recoveries that run at the same time (R6, R7).

use std::collections::BTreeSet;

use relq_core::{Delivery, Disposition, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{drain, eventually, expect_exactly, numbered, payloads, settle_all},
        store::Store,
    },
};

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
