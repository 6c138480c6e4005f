//! A job keeps its result whatever other options it has (R29).

use relq_core::{Delivery, NewJob, Priority, operator::JobState};

use super::fixture::{KEPT, UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        checks::{dead, full_job, id, key, retry_now},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

/// Jobs that keep their results: with no other option, with each, and with all.
fn jobs() -> Vec<NewJob> {
    let full = |name: &'static str| full_job(name).keep_result(KEPT);
    vec![
        kept("plain"),
        kept(""),
        kept(vec![0xf5, b'R', b'Q', 1, 255]),
        kept(vec![b'x'; 100_000]),
        kept("late").delay(BRIEF),
        kept("first").priority(Priority::HIGHEST),
        kept("last").priority(Priority::LOWEST),
        kept("keyed").unique(key("a key")),
        kept("expires").expires_in(HELD),
        kept("named").id(id("mine")),
        kept("headed").header("name", "value").header("other", ""),
        kept("leased").lease(HELD),
        kept("short lease").lease(BRIEF).unique(key("another")),
        full("full"),
        full("full and late").delay(BRIEF),
    ]
}

/// Asserts that a delivery has what the push said.
fn assert_delivered(held: &Delivery, job: &NewJob) {
    assert_eq!(held.payload, job.payload, "R2");
    assert_eq!(held.headers, job.headers, "R2");
    assert_eq!(held.priority, job.priority, "R15");
    assert_eq!(held.max_attempts, job.max_attempts, "R11");
    assert!(job.lease.is_none_or(|lease| held.lease == lease), "R6: {held:?}");
    assert!(job.id.as_ref().is_none_or(|id| held.job() == id), "R4: {held:?}");
    assert!(held.keeps_result, "R29: {held:?}");
}

case!(any_job_may_keep_its_result: R29 R2 R14 R15 R16 R17 => Results);
/// A job with any options is delivered with them and with what was recorded of it, before
/// and after a redrive, and then it has its result.
async fn any_job_may_keep_its_result(store: &Store) {
    let actor = store.actor("worker").await;
    for job in jobs() {
        let job = actor.class().fit(job);
        let stored = actor.store_one(job.clone()).await;
        actor.assert_told(&stored, UNFINISHED).await;
        if !job.delay.is_zero() {
            assert_eq!(actor.take(1).await, [], "R14: it is not due");
            store.advance(PAST_BRIEF).await;
            actor.recover_all().await;
        }
        let held = actor.take_one().await;
        assert_delivered(&held, &job);
        actor.ends(&held, retry_now()).await;
        actor.recover_all().await;
        let held = actor.take_one().await;
        assert_delivered(&held, &job);
        actor.shows(&held, b"half").await;
        actor.ends(&held, dead("no")).await;
        actor.redrive(&relq_core::operator::Selection::All).await.expect("answered");
        actor.assert_told(&stored, UNFINISHED).await;
        let held = actor.take_one().await;
        assert_delivered(&held, &job);

        actor.ends(&held, done_with("result")).await;

        actor.assert_told(&stored, done("result")).await;
        actor.recover_all().await;
        assert_eq!(actor.figures().await.unfinished(), 0);
    }
}

case!(a_listed_job_is_as_pushed: R29 R23 => Results);
/// Operators see the jobs that keep their results like all others.
async fn a_listed_job_is_as_pushed(store: &Store) {
    let actor = store.actor("worker").await;
    let pusher = store.actor_on("pusher", "plain").await;
    let job = || {
        let job = NewJob::new("job").expires_in(HELD).unique(key("k"));
        let job = job.header("name", "value").priority(Priority::HIGHEST);
        actor.class().fit(job.id(id("mine")).lease(HELD))
    };
    pusher.store_one(job()).await;
    actor.store_one(job().keep_result(HELD)).await;

    for state in [JobState::Ready, JobState::Leased, JobState::Dead] {
        let [kept, plain] = [actor.list(state, 10).await, pusher.list(state, 10).await];
        assert_eq!(kept.len(), 1, "R23: {state:?}");
        assert_eq!(kept[0].id, plain[0].id);
        assert_eq!(kept[0].payload, plain[0].payload);
        for queue in [&actor, &pusher] {
            match state {
                JobState::Ready => drop(queue.take_one().await),
                JobState::Leased => {
                    let leased = queue.release_worker(queue.worker()).await;
                    leased.expect("answered");
                    queue.ends(&queue.take_one().await, dead("no")).await;
                }
                _ => {}
            }
        }
    }
}

case!(results_are_no_jobs: R29 R23 => Results);
/// The stats and the audit count no result.
async fn results_are_no_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    for number in 0..10 {
        actor.store_one(kept(format!("job {number}"))).await;
        let held = actor.take_one().await;
        actor.shows(&held, b"half").await;
        actor.ends(&held, done_with("result")).await;
    }

    let stats = actor.figures().await;

    assert_eq!((stats.unfinished(), stats.dead, stats.finished), (0, 0, 10));
    let audit = actor.audit().await.expect("answered");
    assert_eq!((audit.jobs, audit.problems), (0, Vec::new()));
}
