//! Jobs that cannot be restored (R34).

use std::time::Duration;

use relq_core::{
    Error,
    batch::BatchId,
    environment::Timestamp,
    limits::{MAX_RESTORED_ERROR_BYTES, MAX_TIMESTAMP},
    operator::{JobState, JobView, StateDetail},
};

use super::fixture::{was_dead, was_ready, was_scheduled};
use crate::{
    cases::{case, times::now},
    harness::{
        actor::Actor,
        checks::{attempts, id},
        restorer::but,
        store::Store,
    },
};

/// Asserts that a call with these jobs and a good one is refused, and stores nothing.
async fn refuses(actor: &Actor, bad: JobView, word: &str) {
    let reason = actor.is_refused(&[was_ready("good"), bad]).await;

    assert!(reason.contains(word), "R34: not about the {word}: {reason}");
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0), "R34: nothing is stored");
}

case!(what_cannot_be_restored_is_refused: R34 R5 => Restore);
/// A job without an id, a lease, a follower, a piece, a job without an attempt left and one
/// that cannot be read are refused, and the reason names the job.
async fn what_cannot_be_restored_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let now = now(store);
    let (worker, until) = (actor.worker().clone(), now);
    let leased = StateDetail::Leased { worker, since: now, until };
    let following =
        StateDetail::Following { leader: id("leader"), delay: Duration::ZERO };
    let piece = BatchId::new("batch").expect("a valid id");
    let job = || was_ready("bad");

    refuses(&actor, but(job(), |it| it.id = None), "id").await;
    refuses(&actor, but(job(), |it| it.detail = leased), "bad: a lease").await;
    refuses(&actor, but(job(), |it| it.detail = following), "bad: a follower").await;
    refuses(&actor, but(job(), |it| it.batch = Some(piece)), "bad: a piece").await;
    let last = but(job(), |it| {
        it.attempt = 3;
        it.max_attempts = attempts(3);
    });
    refuses(&actor, last, "bad: it has no attempt left").await;
    let unreadable = Some("it cannot be read: it is cut short".to_owned());
    let damaged = but(job(), |it| it.unreadable = unreadable);
    refuses(&actor, damaged, "bad: it cannot be read").await;
    let beyond = but(was_dead("bad", now), |it| {
        it.attempt = 3;
        it.max_attempts = attempts(2);
    });
    refuses(&actor, beyond, "more attempts").await;
    refuses(&actor, but(was_dead("bad", now), |it| it.attempt = 65_536), "attempts")
        .await;
}

case!(times_out_of_range_are_refused: R34 => Restore);
/// Times before 1970 and after 9999 are refused; the first and the last one are not.
async fn times_out_of_range_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let last = MAX_TIMESTAMP;
    let pushed_at = |at| but(was_ready("bad"), |it| it.enqueued_at = Some(at));
    for wrong in [-1, last.unix_ms() + 1, i64::MIN, i64::MAX] {
        let wrong = Timestamp::from_unix_ms(wrong);
        refuses(&actor, pushed_at(wrong), "time of the push").await;
        refuses(&actor, was_dead("bad", wrong), "time of death").await;
    }

    let first = Timestamp::from_unix_ms(0);
    let jobs = [was_dead("first", first), was_dead("last", last)];
    actor.restore_all(&jobs).await;

    actor.lists(JobState::Dead, &jobs).await;
}

case!(due_times_and_expiries_out_of_range_are_refused: R34 => Restore Delay Expiry);
/// The same holds for due times and times of expiry.
async fn due_times_and_expiries_out_of_range_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let last = MAX_TIMESTAMP;
    let until = |at| but(was_ready("bad"), |it| it.expires_at = Some(at));
    for wrong in [-1, last.unix_ms() + 1] {
        let wrong = Timestamp::from_unix_ms(wrong);
        refuses(&actor, was_scheduled("bad", wrong), "due time").await;
        refuses(&actor, until(wrong), "time of expiry").await;
    }

    let job = but(was_scheduled("last", last), |it| it.expires_at = Some(last));
    actor.restore_all(std::slice::from_ref(&job)).await;

    actor.lists(JobState::Scheduled, &[job]).await;
}

case!(more_than_the_limits_is_refused: R34 R5 => Restore);
/// A payload, an error or a call that is too large is refused.
async fn more_than_the_limits_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let most = actor.limits().max_payload;
    let payload = vec![0; most + 1].into();
    refuses(&actor, but(was_ready("bad"), |it| it.payload = payload), "payload").await;
    let error = "x".repeat(MAX_RESTORED_ERROR_BYTES + 1);
    let bad = but(was_ready("bad"), |it| it.last_error = Some(error));
    refuses(&actor, bad, "last error").await;

    let many = actor.limits().max_jobs_per_call.get() + 1;
    let jobs: Vec<_> = (0..many).map(|at| was_ready(&format!("job {at}"))).collect();
    let reason = actor.is_refused(&jobs).await;
    assert!(reason.contains("jobs in one call"), "R34: {reason}");
    actor.restore_all(&jobs[1..]).await;
}

case!(a_header_that_is_too_large_is_refused: R34 => Restore);
/// Headers over the limit are refused.
async fn a_header_that_is_too_large_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let mut job = was_ready("bad");
    job.headers.set("name", "x".repeat(actor.limits().max_headers));

    let refused = actor.restorer().restore(&[job]).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "R34: {refused:?}");
}
