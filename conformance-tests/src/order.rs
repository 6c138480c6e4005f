//! In which order jobs are delivered (R13, R15).

use std::num::NonZeroU32;

use queue_core::{JobState, NewJob, Priority, Verdict, Which};

use crate::{
    checks::{dead, drain, listed, numbered, payloads, retry_now, settle_all},
    store::{Actor, Store},
};

fn urgent(payload: &'static str, level: u8) -> NewJob {
    NewJob::new(payload).priority(Priority::new(level).expect("a valid level"))
}

/// R13: within one push the first is served first.
pub(crate) async fn a_batch_keeps_its_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(300)).await;

    assert_eq!(payloads(&drain(&actor).await), numbered(300));
}

/// R13: across pushes, of several producers too.
pub(crate) async fn batches_keep_their_order(store: &Store) {
    let producers = [store.actor("p1").await, store.actor("p2").await];
    for (index, batch) in numbered(100).chunks(7).enumerate() {
        producers[index % 2].store(batch.to_vec()).await;
    }

    let mut one_by_one = Vec::new();
    for _ in 0..100 {
        let held = producers[0].take_one().await;
        producers[0].finish(&held).await;
        one_by_one.push(held.payload);
    }

    assert_eq!(one_by_one, numbered(100));
}

/// R13: what is given back is served next.
pub(crate) async fn a_given_back_job_is_next(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;

    actor.say(&held, Verdict::GiveBack).await;

    assert_eq!(payloads(&drain(&actor).await), ["a", "b", "c"]);
}

/// R13: several that are given back in one call keep their order, at the front.
pub(crate) async fn given_back_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    let held = actor.take(5).await;

    settle_all(&actor, &held, &Verdict::GiveBack).await;

    assert_eq!(payloads(&drain(&actor).await), numbered(8));
}

/// R13, R24: what a leaving worker held keeps its order, at the front.
pub(crate) async fn a_leavers_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take(2).await;
    actor.take(3).await;

    actor.leave(actor.worker()).await.expect("answered");

    assert_eq!(payloads(&drain(&actor).await), numbered(8));
}

/// R13, R9: recovered jobs keep their order, at the front.
pub(crate) async fn recovered_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take_briefly(5).await;
    store.outlast_brief_leases().await;

    actor.recover_all().await;

    assert_eq!(payloads(&drain(&actor).await), numbered(8));
}

/// R13, R9: also when a page of the recovery holds only some of them.
pub(crate) async fn pages_of_recovery_keep_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take_briefly(5).await;
    store.outlast_brief_leases().await;

    let page = NonZeroU32::new(2).expect("not zero");
    while actor.recover(page).await.expect("answered").more {}

    assert_eq!(payloads(&drain(&actor).await), numbered(8));
}

/// R13: a failed job waits behind those that did not fail.
pub(crate) async fn a_retried_job_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;

    actor.say(&held, retry_now()).await;
    actor.recover_all().await;

    assert_eq!(payloads(&drain(&actor).await), ["b", "c", "a"]);
}

/// R13: a redriven job waits behind those that are ready.
pub(crate) async fn a_redriven_job_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    actor.redrive(&Which::All).await.expect("answered");

    assert_eq!(payloads(&drain(&actor).await), ["b", "c", "a"]);
}

/// R13: a peek shows what is served next, first.
pub(crate) async fn a_peek_shows_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(30)).await;

    let seen = listed(&actor.list(JobState::Ready, 7).await);

    assert_eq!(seen, payloads(&drain(&actor).await));
}

/// R15: larger is sooner, whenever it was pushed.
pub(crate) async fn the_more_urgent_is_first(store: &Store) {
    let actor = store.actor("worker").await;
    for level in [5, 0, 9, 3, 7, 1, 8, 2, 6, 4] {
        let job = NewJob::new(level.to_string());
        actor.store_one(job.priority(Priority::new(level).expect("valid"))).await;
    }

    let served = payloads(&drain(&actor).await);

    assert_eq!(served, ["9", "8", "7", "6", "5", "4", "3", "2", "1", "0"]);
}

/// R15: one claim of many goes through the levels.
pub(crate) async fn one_claim_spans_levels(store: &Store) {
    let actor = store.actor("worker").await;
    actor
        .store([urgent("l1", 1), urgent("h1", 9), NewJob::new("n1"), urgent("h2", 9)])
        .await;

    let taken = actor.take(4).await;

    assert_eq!(payloads(&taken), ["h1", "h2", "n1", "l1"]);
    let levels: Vec<_> = taken.iter().map(|one| one.priority.level()).collect();
    assert_eq!(levels, [9, 9, 5, 1]);
}

/// R15: a job that says nothing has the middle level.
pub(crate) async fn silence_means_normal(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([NewJob::new("silent"), urgent("six", 6), urgent("four", 4)]).await;

    assert_eq!(payloads(&drain(&actor).await), ["six", "silent", "four"]);
}

/// R15, R13: of equal urgency the first pushed is first.
pub(crate) async fn equals_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([urgent("h1", 9), urgent("l1", 0), urgent("h2", 9)]).await;
    actor.store([urgent("l2", 0), urgent("h3", 9), urgent("l3", 0)]).await;

    let served = payloads(&drain(&actor).await);

    assert_eq!(served, ["h1", "h2", "h3", "l1", "l2", "l3"]);
}

/// R15: a job keeps its level through every way back.
pub(crate) async fn a_level_survives_every_way_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([NewJob::new("normal"), urgent("urgent", 8)]).await;

    let held = is_urgent(&actor).await;
    actor.say(&held, Verdict::GiveBack).await;
    let held = is_urgent(&actor).await;
    actor.say(&held, retry_now()).await;
    actor.recover_all().await;
    let held = is_urgent(&actor).await;
    actor.say(&held, dead("no")).await;
    actor.redrive(&Which::All).await.expect("answered");
    is_urgent(&actor).await;
    actor.leave(actor.worker()).await.expect("answered");

    assert_eq!(payloads(&drain(&actor).await), ["urgent", "normal"]);
}

async fn is_urgent(actor: &Actor) -> queue_core::Delivery {
    let held = actor.take_one().await;
    assert_eq!((&held.payload[..], held.priority.level()), (&b"urgent"[..], 8));
    held
}

/// R15, R9: a recovered job goes to the front of its own level, not of another.
pub(crate) async fn a_recovered_job_jumps_no_level(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([urgent("low 1", 2), urgent("low 2", 2)]).await;
    actor.take_briefly(1).await;
    actor.store_one(urgent("high", 8)).await;
    store.outlast_brief_leases().await;

    actor.recover_all().await;

    assert_eq!(payloads(&drain(&actor).await), ["high", "low 1", "low 2"]);
}

/// R15: a peek shows the more urgent first, over page borders.
pub(crate) async fn a_peek_goes_through_the_levels(store: &Store) {
    let actor = store.actor("worker").await;
    for level in [0, 9, 5, 2, 7] {
        let job = NewJob::new(level.to_string());
        let job = job.priority(Priority::new(level).expect("valid"));
        actor.store([job.clone(), job.clone(), job]).await;
    }

    let seen = listed(&actor.list(JobState::Ready, 2).await);

    assert_eq!(seen.len(), 15);
    assert_eq!(seen, payloads(&drain(&actor).await));
}
