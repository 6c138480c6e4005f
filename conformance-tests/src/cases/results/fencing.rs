//! Only the holder of a job stores its result (R29, R7).

use relq_core::{
    Disposition, JobId, NewJob, Settlement, outcome::Settled, results::JobResult,
};

use super::fixture::{UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        checks::{dead, numbered, retry_after},
        store::Store,
        times::HELD,
    },
};

case!(a_result_by_a_lost_lease_is_not_stored: R29 R7 => Results);
/// A settlement with a result whose lease was lost stores nothing: not while the job is
/// ready again, not while another worker holds it, and not after that worker's end.
async fn a_result_by_a_lost_lease_is_not_stored(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    let job = first.store_one(kept("job")).await;
    let stale = first.take_one_briefly().await;
    store.outlast_brief_leases().await;
    second.recover_all().await;
    assert_eq!(first.say(&stale, done_with("stale")).await, Settled::LeaseLost);
    first.assert_told(&job, UNFINISHED).await;
    let held = second.take_one().await;

    assert_eq!(first.say(&stale, done_with("stale")).await, Settled::LeaseLost);
    first.assert_told(&job, UNFINISHED).await;
    second.ends(&held, done_with("right")).await;
    for lost in [&stale, &held] {
        assert_eq!(first.say(lost, done_with("stale")).await, Settled::LeaseLost);
        assert_eq!(first.say(lost, dead("stale")).await, Settled::LeaseLost);
        assert_eq!(first.say(lost, Disposition::Discard).await, Settled::LeaseLost);
    }

    first.assert_told(&job, done("right")).await;
}

case!(a_late_result_is_stored_with_its_job_or_not_at_all: R29 R7 => Results);
/// A settlement after the lease expired, but before a recovery, is applied with its
/// result, or stores nothing.
async fn a_late_result_is_stored_with_its_job_or_not_at_all(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let late = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let settled = actor.say(&late, done_with("late")).await;

    let is_done = settled == Settled::Applied;
    let wanted = if is_done { done("late") } else { UNFINISHED };
    actor.assert_told(&job, wanted).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await.is_empty(), is_done, "R29: {settled:?}");
}

case!(results_of_one_call_are_of_their_jobs: R29 R7 => Results);
/// A call with settlements of every kind, some of which have lost their lease, stores with
/// each job the result of its own settlement.
async fn results_of_one_call_are_of_their_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = numbered(9).into_iter().map(kept).chain([NewJob::new("plain")]);
    actor.store(jobs).await;
    let held = actor.take(10).await;
    let ids: Vec<JobId> = held.iter().map(|one| one.job().clone()).collect();
    for lost in [1, 4] {
        actor.cancel(&ids[lost]).await.expect("answered");
    }
    let ends = [
        (done_with("first"), done("first")),
        (done_with("lost"), JobResult::Cancelled { leader: None }),
        (Disposition::Done, done("")),
        (done_with("second"), done("second")),
        (Disposition::Done, JobResult::Cancelled { leader: None }),
        (Disposition::Discard, JobResult::Discarded),
        (retry_after(HELD), UNFINISHED),
        (dead("no"), JobResult::Dead { error: String::new() }),
        (done_with(""), done("")),
        (done_with("third"), done("third")),
    ];
    let (mut settlements, mut wanted) = (Vec::new(), Vec::new());
    for (one, (end, result)) in held.into_iter().zip(ends) {
        wanted.push(one.keeps_result.then_some(result));
        settlements.push(Settlement::new(one.receipt, end));
    }

    let settled = actor.settle(&settlements).await.expect("answered");

    let lost: Vec<_> = (0..10).filter(|at| settled[*at] != Settled::Applied).collect();
    assert_eq!(lost, [1, 4], "R7: {settled:?}");
    let mut told = actor.told_of(&ids).await;
    // Another case tests the reason of a burial.
    if let Some(JobResult::Dead { error }) = &mut told[7] {
        error.clear();
    }
    assert_eq!(told, wanted, "R29");
}

case!(many_results_of_one_call_are_of_their_jobs: R29 R7 R21 => Results);
/// A call with more results than a step has stores each with its job, also beside lost
/// leases in several steps.
async fn many_results_of_one_call_are_of_their_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let other = store.actor("operator").await;
    let jobs = actor.store(numbered(30).into_iter().map(kept)).await;
    let held = actor.take(30).await;
    for lost in held.iter().step_by(4) {
        other.cancel(lost.job()).await.expect("answered");
    }
    let result = |one: &JobId| format!("of {one}");
    let settlements = held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), done_with(result(one.job()))));

    let settled = actor.settle(&settlements.collect::<Vec<_>>()).await;

    let settled = settled.expect("answered");
    let told = other.told_of(&jobs).await;
    for (at, held) in held.iter().enumerate() {
        let is_lost = at.is_multiple_of(4);
        let wanted = if is_lost { Settled::LeaseLost } else { Settled::Applied };
        assert_eq!(settled[at], wanted, "R7: settlement {at}");
        let job = held.job();
        let place = jobs.iter().position(|it| it == job).expect("it was pushed");
        let wanted = if is_lost {
            JobResult::Cancelled { leader: None }
        } else {
            done(result(job))
        };
        assert_eq!(told[place], Some(wanted), "R29: settlement {at}");
    }
}

case!(a_result_for_a_job_that_keeps_none_is_dropped: R29 R8 => Results);
/// A settlement with a result for a job that keeps none is like one without a result.
async fn a_result_for_a_job_that_keeps_none_is_dropped(store: &Store) {
    let actor = store.actor("worker").await;
    let plain = actor.store_one("plain").await;
    actor.ends(&actor.take_one().await, done_with("result")).await;
    let failed = actor.store_one("failed before").await;
    actor.ends(&actor.take_one().await, retry_after(HELD)).await;
    store.advance(HELD * 2).await;
    actor.recover_all().await;

    actor.ends(&actor.take_one().await, done_with("result")).await;

    assert_eq!(actor.told_of(&[plain, failed]).await, [None, None]);
    assert_eq!(actor.figures().await.finished, 2);
    assert_eq!(actor.take(1).await, []);
}

case!(a_settlement_with_a_claim_stores_results: R29 => Results);
/// A settlement that is sent together with a claim stores its results.
async fn a_settlement_with_a_claim_stores_results(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store([kept("first"), kept("second"), kept("third")]).await;
    let held = actor.take(2).await;
    let settlements = [
        Settlement::new(held[0].receipt.clone(), done_with("result")),
        Settlement::new(held[1].receipt.clone(), Disposition::Done),
    ];

    let both = actor.settle_and_claim(&settlements, &actor.ask(1)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::Applied; 2]);
    let told = |at: usize| actor.result_of(held[at].job());
    assert_eq!(told(0).await, Some(done("result")), "R29");
    assert_eq!(told(1).await, Some(done("")), "R29");
    let unfinished = actor.told_of(&jobs).await;
    let unfinished = unfinished.iter().filter(|one| **one == Some(UNFINISHED));
    assert_eq!(unfinished.count(), 1);
}
