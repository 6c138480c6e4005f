//! A job follows another one whatever other options it has (R30).

use relq_core::{Delivery, NewJob, Priority, operator::JobState};

use super::fixture::named;
use crate::{
    cases::case,
    harness::{
        checks::{attempts, full_job, id, key, retry_now, token},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

/// Followers of the job "leader": with no other option, with each, and with all.
fn followers() -> Vec<NewJob> {
    let new = |payload: &'static str| NewJob::new(payload);
    let full = |name: &'static str| full_job(name).keep_result(HELD);
    let jobs = [
        new("plain"),
        new(""),
        NewJob::new(vec![0xf5, b'R', b'Q', 1, 255]),
        NewJob::new(vec![b'x'; 100_000]),
        new("late").delay(BRIEF),
        new("first").priority(Priority::HIGHEST),
        new("last").priority(Priority::LOWEST),
        new("keyed").unique(key("a key")),
        new("expires").expires_in(HELD),
        new("late and expires").delay(BRIEF).expires_in(HELD),
        new("named").id(id("mine")),
        new("kept").keep_result(HELD),
        new("headed").header("name", "value").header("other", ""),
        new("leased").lease(HELD),
        new("few attempts").max_attempts(attempts(2)),
        full("full"),
        full("full and late").delay(BRIEF),
    ];
    jobs.into_iter().map(|job| job.after(id("leader"))).collect()
}

/// Asserts that a delivery has what the push said.
fn assert_delivered(held: &Delivery, job: &NewJob) {
    assert_eq!(held.payload, job.payload, "R2");
    assert_eq!(held.headers, job.headers, "R2");
    assert_eq!(held.priority, job.priority, "R15");
    assert_eq!(held.max_attempts, job.max_attempts, "R11");
    assert_eq!(held.keeps_result, job.keep_result.is_some(), "R29: {held:?}");
    assert!(job.lease.is_none_or(|lease| held.lease == lease), "R6: {held:?}");
    assert!(job.id.as_ref().is_none_or(|id| held.job() == id), "R4: {held:?}");
}

case!(any_job_may_follow_another: R30 R2 R14 R15 R16 R17 => Followers ClientIds);
/// A follower with any options is listed as it was pushed while it is held, and delivered
/// with them once its leader is done, also after a retry.
async fn any_job_may_follow_another(store: &Store) {
    let actor = store.actor("worker").await;
    for (number, job) in followers().into_iter().enumerate() {
        let leader = id(&format!("leader {number}"));
        let job = actor.class().fit(job.after(leader.clone()));
        actor.store_one(NewJob::new("leader").id(leader.clone())).await;
        actor.store_one(job.clone()).await;
        let listed = actor.list(JobState::Scheduled, 10).await.remove(0);
        assert_eq!(listed.payload, job.payload, "R23");
        assert_eq!(listed.headers, job.headers, "R23");
        assert_eq!(listed.priority, job.priority, "R23");
        assert_eq!(listed.unique, job.unique.as_ref().map(|it| it.key.clone()), "R23");
        actor.finish(&actor.take_one().await).await;

        if !job.delay.is_zero() {
            assert_eq!(actor.take(1).await, [], "R14: it is not due");
            store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
            actor.recover_all().await;
        }
        let held = actor.take_one().await;

        assert_delivered(&held, &job);
        actor.ends(&held, retry_now()).await;
        actor.recover_all().await;
        let held = actor.take_one().await;
        assert_delivered(&held, &job);
        assert_eq!(held.attempt(), 2, "R11");
        actor.finish(&held).await;
        assert_eq!(actor.figures().await.unfinished(), 0, "R1");
    }
}

case!(any_follower_is_cancelled: R30 R4 R16 => Followers ClientIds);
/// A follower with any options is cancelled with its leader, and leaves nothing.
async fn any_follower_is_cancelled(store: &Store) {
    let actor = store.actor("operator").await;
    let followers: Vec<_> =
        followers().into_iter().map(|job| actor.class().fit(job)).collect();
    let count = followers.len() as u64;
    actor.store_one(named("leader")).await;
    actor.store(followers).await;
    assert_eq!(actor.figures().await.scheduled, count, "R30");

    actor.cancel(&id("leader")).await.expect("answered");

    actor.assert_none_ready("the leader was cancelled").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, count + 1), "R30 R23");
    let audit = actor.audit().await.expect("answered");
    assert_eq!((audit.jobs, audit.problems), (0, Vec::new()), "R23");
}

case!(a_call_with_a_token_stores_its_followers_once: R30 R4
    => Followers ClientIds PushTokens);
/// A call that pushes a leader and its followers with a token can be repeated, also after
/// the leader is done.
async fn a_call_with_a_token_stores_its_followers_once(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs =
        [named("leader"), NewJob::new("1").after(id("leader")), NewJob::new("plain")];
    let first = actor.push(&jobs, Some(&token("call"))).await.expect("taken");
    let again = actor.push(&jobs, Some(&token("call"))).await.expect("taken");
    assert_eq!(again, first, "R4");
    for held in actor.take(3).await {
        actor.finish(&held).await;
    }

    let again = actor.push(&jobs, Some(&token("call"))).await.expect("taken");

    assert_eq!(again, first, "R4");
    actor.assert_served(["1"]).await;
    assert_eq!(actor.figures().await.finished, 2, "R4");
}
