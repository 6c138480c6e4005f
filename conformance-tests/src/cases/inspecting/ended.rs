//! The look-up of a job that has ended (R31, R4).

use std::time::Duration;

use relq_core::{
    Disposition, JobId, NewJob,
    limits::DEDUPLICATION_WINDOW,
    operator::{JobLookup, Selection},
};

use crate::{
    cases::{
        case,
        times::{TOLERANCE, now},
    },
    harness::{
        actor::Actor,
        checks::{dead, id},
        store::Store,
    },
};

/// Asserts that the job has ended, whether it was done, and that its id is remembered for
/// this time from now.
async fn assert_ended(
    store: &Store,
    actor: &Actor,
    job: &JobId,
    wanted: (bool, Duration),
) {
    let found = actor.look_up(job).await;
    let JobLookup::Ended { was_done, until } = found else {
        panic!("R31: {job} has ended, and the look-up finds {found:?}")
    };
    assert_eq!(was_done, wanted.0, "R31: whether {job} was done");
    let (left, limit) = (until.since(now(store)), wanted.1);
    let is_near = left <= limit + TOLERANCE && left + TOLERANCE >= limit;
    assert!(is_near, "R31: the id of {job} is remembered for {left:?}, not {limit:?}");
}

/// Asserts that nothing is known of a job.
async fn assert_forgotten(actor: &Actor, job: &JobId) {
    let found = actor.look_up(job).await;
    let is_none = matches!(found, JobLookup::MaybeReady { .. } | JobLookup::Unknown);
    assert!(is_none, "R31: {job} is forgotten, and the look-up finds {found:?}");
}

case!(an_ended_job_says_how: R31 R4 => Inspect ClientIds);
/// The look-up of a job that has ended says whether it was done, and until when its id is
/// remembered.
async fn an_ended_job_says_how(store: &Store) {
    let actor = store.actor("worker").await;
    let window = DEDUPLICATION_WINDOW;
    for (name, end, was_done) in
        [("done", Disposition::Done, true), ("discarded", Disposition::Discard, false)]
    {
        actor.store_one(NewJob::new(name).id(id(name))).await;
        actor.say(&actor.take_one().await, end).await;
        assert_ended(store, &actor, &id(name), (was_done, window)).await;
    }
    actor.store_one(NewJob::new("cancelled").id(id("cancelled"))).await;
    actor.cancel(&id("cancelled")).await.expect("answered");
    assert_ended(store, &actor, &id("cancelled"), (false, window)).await;

    actor.store_one(NewJob::new("purged").id(id("purged"))).await;
    actor.say(&actor.take_one().await, dead("no")).await;
    actor.purge_dead(&Selection::All).await.expect("answered");
    assert_ended(store, &actor, &id("purged"), (false, window)).await;
}

case!(a_kept_result_keeps_the_id: R31 R29 => Inspect Results);
/// The id of a job that keeps its result is remembered as long as the result, and at least
/// as long as that of any other job, however the job ends.
async fn a_kept_result_keeps_the_id(store: &Store) {
    let actor = store.actor("worker").await;
    let window = DEDUPLICATION_WINDOW;
    for (kept, remembered) in [(window * 3, window * 3), (window / 10, window)] {
        for (end, was_done) in
            [(Disposition::Done, true), (Disposition::Discard, false)]
        {
            let job = actor.store_one(NewJob::new("job").keep_result(kept)).await;
            actor.say(&actor.take_one().await, end).await;

            assert_ended(store, &actor, &job, (was_done, remembered)).await;
        }
    }
}

case!(a_forgotten_id_is_unknown: R31 R4 => Inspect ClientIds);
/// Once the id of an ended job is no longer remembered, the look-up knows nothing of it,
/// whether a recovery has removed the record of it or not.
async fn a_forgotten_id_is_unknown(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").id(id("job"))).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(DEDUPLICATION_WINDOW + Duration::from_secs(1)).await;

    assert_forgotten(&actor, &id("job")).await;
    actor.recover_all().await;

    assert_forgotten(&actor, &id("job")).await;
}

case!(an_id_that_is_not_remembered_is_unknown: R31 => Inspect);
/// A look-up knows nothing of an ended job whose id relq made, nor of the jobs of a purged
/// queue.
async fn an_id_that_is_not_remembered_is_unknown(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one("job").await;
    actor.finish(&actor.take_one().await).await;
    assert_forgotten(&actor, &job).await;

    let job = actor.store_one("purged").await;
    actor.take_one().await;
    actor.purge().await.expect("answered");

    assert_forgotten(&actor, &job).await;
}

case!(a_stored_job_is_not_an_ended_one: R31 R4 => Inspect ClientIds Delay);
/// A job that took the id of a forgotten one is found, and not the end of the former.
async fn a_stored_job_is_not_an_ended_one(store: &Store) {
    let actor = store.actor("worker").await;
    let later = || NewJob::new("job").id(id("job")).delay(DEDUPLICATION_WINDOW * 4);
    actor.store_one(NewJob::new("former").id(id("job"))).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(DEDUPLICATION_WINDOW + Duration::from_secs(1)).await;
    actor.store_one(later()).await;

    assert_eq!(actor.record(&id("job")).await.job.payload, "job", "R31");
    store.advance(DEDUPLICATION_WINDOW * 2).await;

    assert_eq!(actor.record(&id("job")).await.job.payload, "job", "R31");
}
