//! Each end of a job is recorded in the step that ends it (R29).

use std::time::Duration;

use relq_core::{
    Disposition, JobId, NewJob,
    operator::{Cancelled, JobState, Selection},
    results::JobResult,
};

use super::fixture::{KEPT, UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{attempts, dead, postpone, reason, retry_after, retry_now},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(a_stored_job_is_unfinished: R29 => Results);
/// From the push on, a job that keeps its result is told as unfinished, and its delivery
/// says that the result is kept. Of a job that keeps none, nothing is told.
async fn a_stored_job_is_unfinished(store: &Store) {
    let actor = store.actor("worker").await;
    let ids = actor.store([kept("kept"), NewJob::new("plain")]).await;

    assert_eq!(actor.told_of(&ids).await, [Some(UNFINISHED), None]);
    let taken = actor.take(2).await;
    assert_eq!(taken.len(), 2);
    for held in &taken {
        assert_eq!(held.keeps_result, held.payload == "kept", "{held:?}");
    }
    assert_eq!(actor.told_of(&ids).await, [Some(UNFINISHED), None]);
}

case!(a_done_job_has_its_result: R29 R8 => Results);
/// The result of the worker is told once the job is done.
async fn a_done_job_has_its_result(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let held = actor.take_one().await;

    actor.ends(&held, done_with("the result")).await;

    actor.assert_told(&job, done("the result")).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, [], "R8: the job is done");
    assert_eq!(actor.figures().await.finished, 1);
    actor.assert_told(&job, done("the result")).await;
}

case!(a_job_that_is_done_without_a_result_has_an_empty_one: R29 => Results);
/// A job that keeps its result and is done without one has an empty result.
async fn a_job_that_is_done_without_a_result_has_an_empty_one(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;

    actor.finish(&actor.take_one().await).await;

    actor.assert_told(&job, done("")).await;
}

case!(a_discarded_job_says_so: R29 => Results);
/// Of a discarded job it is told that it was discarded.
async fn a_discarded_job_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;

    actor.ends(&actor.take_one().await, Disposition::Discard).await;

    actor.assert_told(&job, JobResult::Discarded).await;
}

async fn cancel(actor: &Actor, job: &JobId, from: JobState) {
    let cancelled = actor.cancel(job).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(from));
    actor.assert_told(job, JobResult::Cancelled { leader: None }).await;
}

case!(a_ready_or_leased_job_that_is_cancelled_says_so: R29 => Results);
/// Of a job that was cancelled while it was ready or leased it is told that it was
/// cancelled.
async fn a_ready_or_leased_job_that_is_cancelled_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("leased")).await;
    actor.take_one().await;
    let ready = actor.store_one(kept("ready")).await;

    cancel(&actor, &job, JobState::Leased).await;
    cancel(&actor, &ready, JobState::Ready).await;
}

case!(a_scheduled_job_that_is_cancelled_says_so: R29 R14 => Results Delay);
/// Of a delayed or retried job that was cancelled it is told that it was cancelled.
async fn a_scheduled_job_that_is_cancelled_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let retried = actor.store_one(kept("retried")).await;
    actor.ends(&actor.take_one().await, retry_after(HELD)).await;
    let delayed = actor.store_one(kept("delayed").delay(HELD)).await;

    cancel(&actor, &retried, JobState::Scheduled).await;
    cancel(&actor, &delayed, JobState::Scheduled).await;
}

case!(an_urgent_job_that_is_cancelled_says_so: R29 R15 => Results Priority);
/// Of a ready job of another priority that was cancelled it is told that it was
/// cancelled.
async fn an_urgent_job_that_is_cancelled_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let class = actor.class();
    for priority in [class.most_urgent(), class.least_urgent()] {
        let job = actor.store_one(kept("job").priority(priority)).await;

        cancel(&actor, &job, JobState::Ready).await;
    }
}

/// Asserts that the only dead job is told as dead, with the reason that an operator
/// sees.
async fn assert_told_as_dead(actor: &Actor, job: &JobId, why: &str) {
    let view = actor.the_dead_one().await;
    let error = reason(&view).to_owned();
    assert!(error.contains(why), "R11: {error}");
    actor.assert_told(job, JobResult::Dead { error }).await;
}

case!(a_job_that_its_worker_buries_says_why: R29 R11 => Results);
/// Of a job that its worker buries it is told that it is dead, and why.
async fn a_job_that_its_worker_buries_says_why(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;

    actor.ends(&actor.take_one().await, dead("no such file")).await;

    assert_told_as_dead(&actor, &job, "no such file").await;
}

case!(a_job_that_fails_for_the_last_time_says_why: R29 R11 => Results);
/// A job that fails is unfinished, until its last attempt has failed: then it is dead.
async fn a_job_that_fails_for_the_last_time_says_why(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job").max_attempts(attempts(2))).await;
    actor.ends(&actor.take_one().await, retry_now()).await;
    actor.recover_all().await;
    actor.assert_told(&job, UNFINISHED).await;

    actor.ends(&actor.take_one().await, retry_now()).await;

    assert_told_as_dead(&actor, &job, "it failed").await;
}

case!(a_job_whose_last_lease_ended_says_so: R29 R11 => Results);
/// A job whose lease expires is unfinished, until the lease of its last attempt has: then
/// a recovery buries it, and it is told as dead.
async fn a_job_whose_last_lease_ended_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job").max_attempts(attempts(2))).await;
    for _ in 0..2 {
        actor.assert_told(&job, UNFINISHED).await;
        actor.take_one_briefly().await;
        store.outlast_brief_leases().await;
        actor.assert_told(&job, UNFINISHED).await;
        actor.recover_all().await;
    }

    assert_told_as_dead(&actor, &job, "").await;
}

case!(an_expired_job_is_told_as_dead: R29 R17 => Results Expiry);
/// Of a job that expired before its delivery it is told that it is dead.
async fn an_expired_job_is_told_as_dead(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job").expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, []);

    assert_told_as_dead(&actor, &job, "expired").await;
}

case!(a_redriven_job_is_unfinished_again: R29 => Results);
/// A dead job that is redriven is unfinished, without its earlier progress, and then has
/// the result of its next attempt.
async fn a_redriven_job_is_unfinished_again(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let held = actor.take_one().await;
    actor.shows(&held, b"half").await;
    actor.ends(&held, dead("no")).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(redriven.moved, 1);
    actor.assert_told(&job, UNFINISHED).await;
    let again = actor.take_one().await;
    assert!(again.keeps_result, "R29: the result is still kept");
    actor.ends(&again, done_with("at last")).await;
    actor.assert_told(&job, done("at last")).await;
}

case!(a_job_that_is_purged_when_dead_says_so: R29 => Results);
/// Of a dead job that an operator purged it is told that it was purged.
async fn a_job_that_is_purged_when_dead_says_so(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store([kept("one"), kept("two"), NewJob::new("plain")]).await;
    for held in actor.take(3).await {
        actor.ends(&held, dead("no")).await;
    }

    let one = Selection::Only(vec![jobs[0].clone()]);
    assert_eq!(actor.purge_dead(&one).await.expect("answered"), 1);

    actor.assert_told(&jobs[0], JobResult::Purged).await;
    let told = actor.result_of(&jobs[1]).await;
    assert!(matches!(told, Some(JobResult::Dead { .. })), "R29: {told:?}");
    assert_eq!(actor.purge_dead(&Selection::All).await.expect("answered"), 2);
    let purged = Some(JobResult::Purged);
    assert_eq!(actor.told_of(&jobs).await, [purged.clone(), purged, None]);
}

case!(a_purge_removes_all_that_is_recorded: R29 => Results);
/// After a purge of the queue nothing is told of its jobs, whatever became of them. A job
/// that is pushed after it is told as any other.
async fn a_purge_removes_all_that_is_recorded(store: &Store) {
    let actor = store.actor("worker").await;
    let mut jobs = actor.store([kept("done"), kept("dead"), kept("leased")]).await;
    let taken = actor.take(3).await;
    actor.ends(&taken[0], done_with("result")).await;
    actor.ends(&taken[1], dead("no")).await;
    actor.shows(&taken[2], b"half").await;
    jobs.push(actor.store_one(kept("ready")).await);

    actor.purge().await.expect("answered");

    assert_eq!(actor.told_of(&jobs).await, [None, None, None, None]);
    actor.say(&taken[2], done_with("too late")).await;
    actor.recover_all().await;
    assert_eq!(actor.told_of(&jobs).await, [None, None, None, None]);
    let next = actor.store_one(kept("next")).await;
    actor.assert_told(&next, UNFINISHED).await;
    actor.ends(&actor.take_one().await, done_with("result")).await;
    actor.assert_told(&next, done("result")).await;
}

case!(a_job_that_comes_back_is_unfinished: R29 => Results);
/// A job that is retried, postponed, given back, released or recovered is unfinished, and
/// then has the result of its last attempt.
async fn a_job_that_comes_back_is_unfinished(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let returns = [
        retry_now(),
        postpone(Duration::ZERO),
        Disposition::GiveBack,
        retry_after(BRIEF),
        postpone(BRIEF),
    ];
    for disposition in returns {
        actor.ends(&actor.take_one().await, disposition).await;
        actor.assert_told(&job, UNFINISHED).await;
        store.advance(PAST_BRIEF).await;
        actor.recover_all().await;
        actor.assert_told(&job, UNFINISHED).await;
    }
    actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    actor.assert_told(&job, UNFINISHED).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.assert_told(&job, UNFINISHED).await;

    let held = actor.take_one().await;
    assert!(held.keeps_result, "R29: {held:?}");
    actor.ends(&held, done_with("result")).await;

    actor.assert_told(&job, done("result")).await;
}

case!(a_job_of_a_long_time_in_the_queue_is_unfinished: R29 => Results);
/// The time of a result begins at the end of the job, however long that takes.
async fn a_job_of_a_long_time_in_the_queue_is_unfinished(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    store.advance(KEPT * 2).await;
    actor.recover_all().await;
    actor.assert_told(&job, UNFINISHED).await;

    actor.ends(&actor.take_one().await, done_with("result")).await;

    store.advance(KEPT - HELD).await;
    actor.recover_all().await;
    actor.assert_told(&job, done("result")).await;
}
