//! Several callers settle, claim or send heartbeats at the same moment, and each gets
//! the result for its own jobs.

use std::time::Duration;

use relq_core::{
    Delivery, Disposition, Error, JobId, Settlement,
    error::Effect,
    operator::JobState,
    outcome::{Extended, Settled},
};

use super::{at_once, survivable_faults};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{every_disposition, expect_exactly, numbered, payloads, settle_all},
        store::Store,
        times::{HELD, PAST_BRIEF},
    },
};

/// Settles the deliveries on one connection, each by a call of its own. All calls run
/// at once.
async fn settle_at_once(
    actor: &Actor,
    said: &[(Delivery, Disposition)],
) -> Vec<Result<Vec<Settled>, Error>> {
    at_once(said.iter().map(|(held, disposition)| {
        let settlement = Settlement::new(held.receipt.clone(), disposition.clone());
        let actor = actor.clone();
        async move { actor.settle(&[settlement]).await }
    }))
    .await
}

/// Returns the ids of all jobs that are in the state `state`.
async fn ids_in(actor: &Actor, state: JobState) -> Vec<JobId> {
    actor.list(state, 100).await.into_iter().filter_map(|view| view.id).collect()
}

/// Gives each delivery one of the dispositions in `all`. If there are more deliveries
/// than dispositions, the dispositions repeat.
fn in_turn(held: Vec<Delivery>, all: &[Disposition]) -> Vec<(Delivery, Disposition)> {
    held.into_iter().zip(all.iter().cycle().cloned()).collect()
}

case!(settlements_at_once_end_their_own_jobs: R7);
/// Callers settle one job each at once. They use every disposition, and some use a
/// stale receipt. Each result is true for the caller's own job.
async fn settlements_at_once_end_their_own_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(20)).await;
    let held = actor.take(20).await;
    let lost: Vec<_> = held.iter().step_by(4).cloned().collect();
    settle_all(&actor, &lost, &Disposition::Done).await;
    let said = in_turn(held, &every_disposition(Duration::ZERO));

    let answers = settle_at_once(&actor, &said).await;

    let mut wanted = [const { Vec::new() }; 3];
    for ((one, disposition), answer) in said.iter().zip(answers) {
        let is_lost = lost.contains(one);
        let expected = if is_lost { Settled::LeaseLost } else { Settled::Applied };
        assert_eq!(answer.expect("answered"), [expected], "{disposition:?}");
        match disposition {
            _ if is_lost => {}
            Disposition::Done | Disposition::DoneWith { .. } | Disposition::Discard => {
            }
            Disposition::GiveBack | Disposition::Postpone { .. } => {
                wanted[0].push((one.job().clone(), 1));
            }
            Disposition::Retry { .. } => wanted[1].push((one.job().clone(), 2)),
            Disposition::Dead { .. } => wanted[2].push((one.job().clone(), 1)),
        }
    }
    let [not_run, retried, buried] = wanted;
    let buried = buried.into_iter().map(|(job, _)| job);
    expect_exactly(ids_in(&actor, JobState::Dead).await, buried);
    actor.recover_all().await;
    let again = actor.take(20).await;
    let again = again.into_iter().map(|one| (one.job().clone(), one.attempt()));
    expect_exactly(again, not_run.into_iter().chain(retried));
}

case!(each_settlement_at_once_knows_what_became_of_its_job: R7 R21 @ redis);
/// Callers settle one job each at once, and a fault hits a command of their
/// settlements. Each caller's result is true for its job: settled, still leased, or
/// maybe settled.
async fn each_settlement_at_once_knows_what_became_of_its_job(store: &Store) {
    for fault in survivable_faults() {
        for command in 1..=3 {
            for all in [&every_disposition(Duration::ZERO)[..], &[Disposition::Done]] {
                let actor = store.actor("worker").await;
                actor.store(numbered(10)).await;
                let said = in_turn(actor.take(10).await, all);
                store.inject("worker", command, fault.clone());

                let answers = settle_at_once(&actor, &said).await;

                store.heal().await;
                let leased = ids_in(&actor, JobState::Leased).await;
                for ((one, disposition), answer) in said.iter().zip(&answers) {
                    let is_leased = leased.contains(one.job());
                    let is_true = match answer {
                        Ok(settled) => *settled == [Settled::Applied] && !is_leased,
                        Err(error) => error.effect() != Effect::No || is_leased,
                    };
                    assert!(
                        is_true,
                        "{fault:?} at command {command}: {disposition:?}: {answer:?}, \
                         and leased: {is_leased}",
                    );
                }
                actor.purge().await.expect("purged");
            }
        }
    }
}

case!(claims_at_once_share_the_jobs: R6);
/// Workers on one connection claim at once, and each job is delivered to exactly one of
/// them.
async fn claims_at_once_share_the_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    for workers in [2, 3, 8] {
        actor.store(numbered(7)).await;
        let claims = (0..workers).map(|number| {
            let worker = actor.acting_as(&format!("worker-{number}"));
            async move { worker.take(2).await }
        });

        let taken = at_once(claims).await;

        assert!(taken.iter().all(|of_one| of_one.len() <= 2));
        let mut all: Vec<_> = taken.into_iter().flatten().collect();
        assert_eq!(all.len(), 7.min(workers * 2), "{workers} workers");
        all.extend(actor.take(7).await);
        expect_exactly(payloads(&all), numbered(7));
        assert!(all.iter().all(|one| one.attempt() == 1));
        settle_all(&actor, &all, &Disposition::Done).await;
    }
}

case!(heartbeats_at_once_keep_their_own_leases: R6 R8 => JobLease);
/// Workers on one connection send heartbeats at once. Each keeps the leases that it
/// holds, and its result names the lease that it has lost.
async fn heartbeats_at_once_keep_their_own_leases(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(12)).await;
    let mut beats = Vec::new();
    for number in 0..3 {
        let worker = actor.acting_as(&format!("worker-{number}"));
        let held = worker.take_briefly(4).await;
        worker.finish(&held[number]).await;
        beats.push((worker, held));
    }

    let answers = at_once(beats.clone().into_iter().map(|(worker, held)| async move {
        let held: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
        worker.extend(worker.worker(), &held, HELD).await
    }))
    .await;

    for (number, answer) in answers.into_iter().enumerate() {
        let answer = answer.expect("answered");
        let is_lost = answer.iter().map(|one| *one == Extended::LeaseLost);
        let expected = (0..4).map(|at| at == number);
        assert!(is_lost.eq(expected), "worker {number}: {answer:?}");
    }
    store.advance(PAST_BRIEF).await;
    assert_eq!(actor.recover_all().await.requeued, 0, "all were extended");
}
