//! The stats say how long the oldest ready job has been waiting (R27).

use std::time::Duration;

use relq_core::{Disposition, NewJob, operator::Selection};

use super::{TOLERANCE, assert_oldest};
use crate::{
    cases::case,
    harness::{
        checks::{dead, numbered, postpone, retry_after, retry_now, settle_all},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(the_oldest_ready_job_is_told: R27 => ReadyAge);
/// The stats say how long the oldest ready job has been waiting. Leased and scheduled
/// jobs do not count.
async fn the_oldest_ready_job_is_told(store: &Store) {
    let actor = store.actor("worker").await;
    assert_eq!(actor.figures().await.oldest_ready_age, None);

    actor.store_one("first").await;
    store.advance(10 * TOLERANCE).await;
    actor.store_one("second").await;
    store.advance(10 * TOLERANCE).await;
    assert_oldest(&actor.figures().await, 20 * TOLERANCE);

    let first = actor.take_one().await;
    assert_oldest(&actor.figures().await, 10 * TOLERANCE);
    let second = actor.take_one().await;
    assert_eq!(actor.figures().await.oldest_ready_age, None, "all jobs are leased");
    actor.say(&first, retry_after(HELD)).await;
    actor.finish(&second).await;
    assert_eq!(actor.figures().await.oldest_ready_age, None, "a scheduled job is left");
}

case!(a_job_counts_from_when_it_became_ready: R27 => ReadyAge);
/// A job that was retried, postponed, delayed or redriven counts from when it became
/// ready, not from its push.
async fn a_job_counts_from_when_it_became_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    for settlement in
        [retry_now(), postpone(Duration::ZERO), retry_after(BRIEF), postpone(BRIEF)]
    {
        store.advance(10 * TOLERANCE).await;
        let held = actor.take_one().await;
        actor.say(&held, settlement).await;
        store.advance(PAST_BRIEF).await;
        actor.recover_all().await;
        assert_oldest(&actor.figures().await, Duration::ZERO);
    }
    store.advance(10 * TOLERANCE).await;
    assert_oldest(&actor.figures().await, 10 * TOLERANCE);

    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    store.advance(10 * TOLERANCE).await;
    assert_eq!(actor.figures().await.oldest_ready_age, None, "a dead job is left");
    actor.redrive(&Selection::All).await.expect("answered");
    assert_oldest(&actor.figures().await, Duration::ZERO);
}

case!(a_delayed_job_counts_from_its_promotion: R14 R27 => ReadyAge Delay);
/// Jobs that were delayed count from when they became ready, also when there are too many
/// for one step.
async fn a_delayed_job_counts_from_its_promotion(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let jobs = numbered(20).into_iter().map(|job| NewJob::new(job).delay(HELD));
    actor.store(jobs).await;
    store.advance(HELD + PAST_BRIEF).await;

    actor.recover_all().await;

    assert_oldest(&actor.figures().await, Duration::ZERO);
    store.advance(10 * TOLERANCE).await;
    for left in (1..=20).rev() {
        assert_oldest(&actor.figures().await, 10 * TOLERANCE);
        let held = actor.take_one().await;
        assert!(held.enqueued_at.is_some(), "R27: {left} jobs were left");
        actor.finish(&held).await;
    }
}

case!(a_due_job_counts_although_nobody_makes_it_ready: R14 R27 => ReadyAge Delay);
/// If no worker runs, delayed and retried jobs stay scheduled. From when they are due they
/// count as waiting.
async fn a_due_job_counts_although_nobody_makes_it_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;
    actor.store_one(NewJob::new("later").delay(HELD + 20 * TOLERANCE)).await;
    assert_eq!(actor.figures().await.oldest_ready_age, None, "none is due");

    store.advance(HELD + 10 * TOLERANCE).await;

    assert_oldest(&actor.figures().await, 10 * TOLERANCE);
}

case!(a_job_that_comes_back_keeps_its_age: R9 R24 R27 => ReadyAge JobLease);
/// A job that is recovered, given back or released goes to the front, and counts from
/// when it became ready before.
async fn a_job_that_comes_back_keeps_its_age(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    store.advance(10 * TOLERANCE).await;

    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    assert_oldest(&actor.figures().await, 10 * TOLERANCE);
    let held = actor.take_one().await;
    actor.say(&held, Disposition::GiveBack).await;
    assert_oldest(&actor.figures().await, 10 * TOLERANCE);
    actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    assert_oldest(&actor.figures().await, 10 * TOLERANCE);
}

case!(an_old_job_behind_urgent_ones_counts: R15 R27 => ReadyAge Priority);
/// The stats report the age of the oldest ready job, whether more urgent jobs will be
/// served before it or it is the most urgent job itself.
async fn an_old_job_behind_urgent_ones_counts(store: &Store) {
    let actor = store.actor("worker").await;
    let levels: Vec<_> = actor.class().levels().collect();
    for old in &levels {
        actor.store_one(NewJob::new("old").priority(*old)).await;
        store.advance(10 * TOLERANCE).await;
        let fresh = levels.iter().map(|level| NewJob::new("fresh").priority(*level));
        actor.store(fresh).await;

        assert_oldest(&actor.figures().await, 10 * TOLERANCE);

        let all = actor.take(100).await;
        settle_all(&actor, &all, &Disposition::Done).await;
    }
}
