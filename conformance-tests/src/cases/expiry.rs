//! An expired job is buried and not delivered (R17).

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    Disposition, NewJob,
    operator::{JobState, Selection},
};

use crate::{
    cases::case,
    harness::{
        checks::{
            dead, delivers, drain, expect_exactly, numbered, payloads, reason,
            retry_after,
        },
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
};

case!(an_expired_job_is_buried: R17 => Expiry);
/// An expired job is buried, with expiry as the reason.
async fn an_expired_job_is_buried(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([NewJob::new("stale").expires_in(BRIEF), NewJob::new("fresh")]).await;
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;
    let taken = actor.take(10).await;

    assert_eq!(payloads(&taken), ["fresh"]);
    let buried = actor.the_dead_one().await;
    assert_eq!((&buried.payload[..], buried.attempt), (&b"stale"[..], 0));
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
}

case!(expired_jobs_block_nobody: R17 => Expiry);
/// A claim skips any number of expired jobs and delivers the jobs behind them.
async fn expired_jobs_block_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    let stale =
        numbered(1500).into_iter().map(|one| NewJob::new(one).expires_in(BRIEF));
    let stale: Vec<_> = stale.collect();
    for batch in stale.chunks(500) {
        actor.store(batch.to_vec()).await;
    }
    actor.store_one("fresh").await;
    store.advance(PAST_BRIEF * 4).await;

    let taken = actor.take_within(1, Duration::from_secs(10)).await;

    assert_eq!(payloads(&taken), ["fresh"]);
    assert_eq!(actor.take(1).await, []);
}

case!(a_job_in_time_is_delivered: R17 => Expiry);
/// A job that is claimed before its expiry is delivered.
async fn a_job_in_time_is_delivered(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(HELD)).await;

    delivers(&actor, ["job"]).await;
}

case!(a_running_job_does_not_expire: R17 => Expiry);
/// A job that expires while it is leased is settled as usual.
async fn a_running_job_does_not_expire(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;

    actor.finish(&held).await;

    assert_eq!(actor.figures().await.dead, 0);
}

case!(a_retried_job_expires: R17 => Expiry);
/// A job that is retried after its expiry is not delivered again.
async fn a_retried_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    actor.say(&held, retry_after(Duration::ZERO)).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let buried = actor.the_dead_one().await;
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
    assert_eq!(buried.last_error.as_deref(), Some("it failed"));
}

case!(a_recovered_job_expires: R17 => Expiry);
/// A job that is recovered after its expiry is not delivered again.
async fn a_recovered_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    actor.take_one_briefly().await;
    store.advance(PAST_LIFE).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let buried = actor.the_dead_one().await;
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
}

case!(a_given_back_job_expires: R17 => Expiry);
/// A job that is given back after its expiry is not delivered again.
async fn a_given_back_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    actor.say(&held, Disposition::GiveBack).await;

    assert_eq!(actor.take(1).await, []);

    assert_eq!(actor.the_dead_one().await.payload, "job");
}

case!(a_scheduled_job_expires: R17 R14 => Delay Expiry);
/// A job that expires before it is due is buried, not delivered.
async fn a_scheduled_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new("job").delay(BRIEF).expires_in(BRIEF / 2);
    actor.store_one(job).await;
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let buried = actor.the_dead_one().await;
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
}

case!(an_expiry_of_zero_is_never_delivered: R17 => Expiry);
/// A job with an expiry of zero is never delivered.
async fn an_expiry_of_zero_is_never_delivered(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(Duration::ZERO)).await;
    store.advance(Duration::from_millis(5)).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(an_expired_job_survives_redrive: R17 => Expiry);
/// A redriven job that has expired is not delivered, or is redriven without its
/// expiry. It is never lost.
async fn an_expired_job_survives_redrive(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    actor.take(1).await;

    actor.redrive(&Selection::All).await.expect("answered");

    let delivered = drain(&actor).await.len() as u64;
    assert_eq!(delivered + actor.figures().await.dead, 1);
}

case!(a_redriven_job_keeps_a_running_expiry: R17 R23 => Expiry);
/// A dead letter is redriven before it expires. It keeps its expiry, and is not
/// delivered after it.
async fn a_redriven_job_keeps_a_running_expiry(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    let before = actor.the_dead_one().await.expires_at;

    actor.redrive(&Selection::All).await.expect("answered");

    let ready = actor.list(JobState::Ready, 10).await;
    let expiries: Vec<_> = ready.iter().map(|view| view.expires_at).collect();
    assert_eq!(expiries, [before], "R17: the expiry of a redriven job");
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, [], "R17: an expired job is not delivered");
    let buried = actor.the_dead_one().await;
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
}

case!(a_view_shows_the_expiry: R17 R23 => Expiry);
/// The view of a job shows its expiry.
async fn a_view_shows_the_expiry(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([NewJob::new("a").expires_in(HELD), NewJob::new("b")]).await;

    let ready = actor.list(JobState::Ready, 10).await;

    let shown = ready.iter().map(|one| (&one.payload[..], one.expires_at.is_some()));
    expect_exactly(shown, [(&b"a"[..], true), (&b"b"[..], false)]);
}

case!(a_job_is_buried_once: R11 R17 => Expiry);
/// A job's last attempt fails after the job has expired. Both are reasons for burial,
/// but the job is buried only once.
async fn a_job_is_buried_once(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new("job").expires_in(LIFE).max_attempts(NonZeroU16::MIN);
    actor.store_one(job).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;

    actor.say(&held, dead("no")).await;
    actor.recover_all().await;

    assert_eq!(actor.the_dead_one().await.last_error.as_deref(), Some("no"));
}
