//! A job keeps the error of its last failed attempt (R11, R23).

use std::time::Duration;

use relq_core::{
    Disposition, NewJob,
    limits::{MAX_ERROR_BYTES, MAX_LAST_ERROR_BYTES, kept_error, with_lost_lease},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{attempts, plain_and_full, postpone, retry_now},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
    spec::operation::STATES,
};

case!(a_crash_keeps_the_last_error: R11);
/// A dead letter keeps the error of an earlier attempt when the last attempt ended by a
/// crash.
async fn a_crash_keeps_the_last_error(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").max_attempts(attempts(2))).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_now()).await;
    actor.recover_all().await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    let buried = actor.the_dead_one().await;

    let expected = "it failed; attempt 2: lease ended, no heartbeat";
    assert_eq!(buried.last_error.as_deref(), Some(expected));
}

case!(a_last_error_stays_until_the_next: R11 R23 R24 R26);
/// The last error of a job stays with it when the job is given back, released with its
/// worker, postponed, recovered or due, until an attempt fails with another error.
async fn a_last_error_stays_until_the_next(store: &Store) {
    let actor = store.actor("worker").await;
    for job in plain_and_full(&actor) {
        actor.store_one(job).await;
        fail(&actor, "first", BRIEF).await;
        shows_error(&actor, "retried", "first").await;

        store.advance(PAST_BRIEF).await;
        actor.recover_all().await;
        shows_error(&actor, "due", "first").await;
        let held = actor.take_one().await;
        shows_error(&actor, "claimed", "first").await;
        actor.say(&held, Disposition::GiveBack).await;
        shows_error(&actor, "given back", "first").await;
        actor.take_one().await;
        actor.release_worker(actor.worker()).await.expect("answered");
        shows_error(&actor, "released", "first").await;
        let held = actor.take_one().await;
        actor.say(&held, postpone(Duration::ZERO)).await;
        shows_error(&actor, "postponed", "first").await;

        actor.recover_all().await;
        fail(&actor, "second", Duration::ZERO).await;
        shows_error(&actor, "retried again", "second").await;
        actor.purge().await.expect("answered");
    }
}

/// Claims the only ready job, and returns it as failed with that error, to be retried `after`
/// that time.
async fn fail(actor: &Actor, error: &str, after: Duration) {
    let held = actor.take_one().await;
    actor.say(&held, Disposition::Retry { after, error: error.to_owned() }).await;
}

/// Asserts that the only job, whatever its state, is listed with that last error.
async fn shows_error(actor: &Actor, after: &str, error: &str) {
    let mut errors = Vec::new();
    for state in STATES {
        let views = actor.list(state, 10).await;
        errors.extend(views.into_iter().map(|view| view.last_error));
    }
    assert_eq!(
        errors,
        [Some(error.to_owned())],
        "R11: the last error of a {after} job"
    );
}

case!(each_lost_lease_is_told: R11);
/// A dead letter lists each attempt that ended without a settlement.
async fn each_lost_lease_is_told(store: &Store) {
    let actor = store.actor("worker").await;
    let told = |attempt| format!("attempt {attempt}: lease ended, no heartbeat");
    let expected = [told(1), told(2), told(3)].join("; ");
    for job in plain_and_full(&actor) {
        actor.store_one(job.max_attempts(attempts(3))).await;
        for _ in 0..3 {
            actor.take_one_briefly().await;
            store.outlast_brief_leases().await;
            actor.recover_all().await;
        }

        let buried = actor.the_dead_one().await;

        let error = buried.last_error.as_deref();
        assert_eq!(error, Some(&*expected), "R11: of {:?}", buried.payload);
        actor.purge().await.expect("answered");
    }
}

case!(the_newest_lost_leases_are_told: R11 R23);
/// The last error of a job that loses lease after lease stays within its limit in bytes,
/// and keeps as many of the newest notes as fit, recovered or not yet.
async fn the_newest_lost_leases_are_told(store: &Store) {
    const LOST: u16 = 220;
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").max_attempts(attempts(LOST))).await;
    let held = actor.take_one().await;
    // Each character has three bytes, so a limit in characters would keep more, and the
    // limit in bytes is within a character.
    let error = "\u{20ac}".repeat(MAX_ERROR_BYTES);
    let retry = Disposition::Retry { after: Duration::ZERO, error: error.clone() };
    actor.say(&held, retry).await;
    actor.recover_all().await;

    let mut expected = kept_error(&error).to_owned();
    for attempt in 2..=LOST {
        actor.take_one_briefly().await;
        store.outlast_brief_leases().await;
        actor.recover_all().await;
        expected = with_lost_lease(Some(&expected), attempt.into());
        assert!(expected.len() <= MAX_LAST_ERROR_BYTES);
        if attempt % 20 == 0 && attempt < LOST {
            shows_error(&actor, "recovered", &expected).await;
        }
    }

    let buried = actor.the_dead_one().await;
    assert_eq!(buried.last_error, Some(expected), "R11: of many lost leases");
}

case!(a_long_error_is_cut: R11 R23);
/// Of a long error, the first bytes are kept, cut between two characters.
async fn a_long_error_is_cut(store: &Store) {
    let actor = store.actor("worker").await;
    for before in 0..4 {
        let long = "x".repeat(before) + &"\u{1f600}".repeat(MAX_ERROR_BYTES);
        actor.store_one("job").await;
        let held = actor.take_one().await;
        let retry = Disposition::Retry { after: Duration::ZERO, error: long.clone() };
        actor.say(&held, retry).await;
        shows_error(&actor, "retried", kept_error(&long)).await;

        actor.recover_all().await;
        let held = actor.take_one().await;
        actor.say(&held, Disposition::Dead { error: long.clone() }).await;
        shows_error(&actor, "dead", kept_error(&long)).await;
        let buried = actor.the_dead_one().await;
        assert!(buried.total_bytes() < 3 * MAX_ERROR_BYTES, "{}", buried.total_bytes());
        actor.purge().await.expect("answered");
    }
}
