//! Duplicates record nothing: what is told is what became of the existing job (R29, R4,
//! R16).

use relq_core::{NewJob, outcome::DuplicateOf};

use super::fixture::{UNFINISHED, done, done_with, kept, reported};
use crate::{
    cases::case,
    harness::{
        checks::{duplicate, id, key, token},
        store::Store,
    },
};

case!(a_duplicate_by_id_records_nothing: R29 R4 => Results ClientIds);
/// A push with the id of a job that exists or ended a moment ago changes nothing of what
/// is told of that job.
async fn a_duplicate_by_id_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let mine = || kept("job").id(id("mine"));
    let job = actor.store_one(mine()).await;
    let known = duplicate(&job, DuplicateOf::Id);
    let held = actor.take_one().await;
    actor.shows(&held, b"half").await;
    assert_eq!(actor.offer(mine()).await, known);
    actor.assert_told(&job, reported("half")).await;
    actor.ends(&held, done_with("result")).await;

    assert_eq!(actor.offer(mine()).await, known);

    actor.assert_told(&job, done("result")).await;
}

case!(a_duplicate_of_a_job_that_keeps_none_records_nothing: R29 R4 => Results ClientIds);
/// If a duplicate asks for a result and the existing job does not keep one, nothing is
/// told.
async fn a_duplicate_of_a_job_that_keeps_none_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let plain = NewJob::new("job").id(id("mine"));
    let job = actor.store_one(plain).await;
    let known = duplicate(&job, DuplicateOf::Id);

    assert_eq!(actor.offer(kept("job").id(id("mine"))).await, known);

    actor.assert_untold(&job).await;
    actor.ends(&actor.take_one().await, done_with("result")).await;
    actor.assert_untold(&job).await;
}

case!(a_duplicate_in_one_call_records_nothing: R29 R4 => Results ClientIds);
/// Of two jobs of one id in one push, the first is stored and told.
async fn a_duplicate_in_one_call_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [
        NewJob::new("plain").id(id("plain first")),
        kept("kept").id(id("plain first")),
        kept("kept").id(id("kept first")),
        NewJob::new("plain").id(id("kept first")),
    ];

    actor.push(&jobs, None).await.expect("answered");

    actor.assert_untold(&id("plain first")).await;
    actor.assert_told(&id("kept first"), UNFINISHED).await;
    for held in actor.take(4).await {
        assert_eq!(held.keeps_result, *held.job() == id("kept first"), "{held:?}");
        actor.ends(&held, done_with("result")).await;
    }
    actor.assert_untold(&id("plain first")).await;
    actor.assert_told(&id("kept first"), done("result")).await;
}

case!(a_duplicate_by_key_records_nothing: R29 R16 => Results Unique);
/// A push whose unique key is held records nothing, and the holder is told as before. Its
/// result is read by the id that the push returns.
async fn a_duplicate_by_key_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let keyed = || kept("job").unique(key("k"));
    let holder = actor.store_one(keyed()).await;
    let held = actor.take_one().await;
    actor.shows(&held, b"half").await;

    let again = actor.offer(keyed()).await;

    assert_eq!(again, duplicate(&holder, DuplicateOf::UniqueKey));
    actor.assert_told(&holder, reported("half")).await;
    actor.ends(&held, done_with("result")).await;
    actor.assert_told(again.job(), done("result")).await;
}

case!(a_duplicate_by_key_with_an_id_is_not_told: R29 R16 R4 => Results Unique ClientIds);
/// If the id of a push is free and its unique key is held, nothing is told of that id.
async fn a_duplicate_by_key_with_an_id_is_not_told(store: &Store) {
    let actor = store.actor("worker").await;
    let keyed = |name| kept("job").unique(key("k")).id(id(name));
    let holder = actor.store_one(keyed("holder")).await;

    let again = actor.offer(keyed("another")).await;

    assert_eq!(again, duplicate(&holder, DuplicateOf::UniqueKey));
    actor.assert_untold(&id("another")).await;
    actor.assert_told(&holder, UNFINISHED).await;
}

case!(the_id_of_a_kept_job_is_remembered: R29 R4 => Results ClientIds);
/// The id that relq made for a job that keeps its result is remembered like one that a
/// client made, also after the end of the job.
async fn the_id_of_a_kept_job_is_remembered(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let known = duplicate(&job, DuplicateOf::Id);
    let again = || kept("again").id(job.clone());

    assert_eq!(actor.offer(again()).await, known, "R29: it is ready");
    let held = actor.take_one().await;
    assert_eq!(actor.offer(again()).await, known, "R29: it is leased");
    actor.ends(&held, done_with("result")).await;
    assert_eq!(actor.offer(again()).await, known, "R29: it is done");

    actor.assert_told(&job, done("result")).await;
    assert_eq!(actor.take(1).await, []);
}

case!(a_repeated_token_records_nothing: R29 R4 => Results PushTokens);
/// A repeated push with a token returns the ids of the first one, and what is told of
/// these jobs stays.
async fn a_repeated_token_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [kept("first"), kept("second")];
    let first = actor.push(&jobs, Some(&token("t"))).await.expect("answered");
    let held = actor.take_one().await;
    actor.ends(&held, done_with("result")).await;

    let again = actor.push(&jobs, Some(&token("t"))).await.expect("answered");

    assert_eq!(again, first, "R4");
    let ids: Vec<_> = again.iter().map(|one| one.job().clone()).collect();
    for (job, told) in ids.iter().zip(actor.told_of(&ids).await) {
        let is_done = job == held.job();
        let wanted = if is_done { done("result") } else { UNFINISHED };
        assert_eq!(told, Some(wanted), "R29: job {job}");
    }
}
