//! Repeated calls of push with the same push token.

use std::time::Duration;

use relq_core::{
    NewJob,
    operator::JobState,
    outcome::{DuplicateOf, Pushed},
};

use super::{mine, stay_within_window};
use crate::{
    cases::case,
    harness::{
        checks::{
            delivers, drain, duplicate, expect_exactly, id, key, numbered, token,
        },
        store::Store,
        times::{HELD, PAST_WINDOW},
    },
};

case!(a_token_is_stored_once: R4 => PushTokens);
/// A second push with the same token stores nothing and returns the first result.
async fn a_token_is_stored_once(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs: Vec<NewJob> = numbered(30).into_iter().map(NewJob::new).collect();
    let first = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    let again = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    assert_eq!(again, first);
    delivers(&actor, numbered(30)).await;
}

case!(a_token_makes_the_ids: R4 => PushTokens);
/// The job ids of a push with a token are derived from the token.
async fn a_token_makes_the_ids(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs = [NewJob::new("a"), NewJob::new("b")];

    let pushed = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    let ids: Vec<_> = pushed.iter().map(|one| one.job().clone()).collect();
    assert_eq!(ids, [token("t").job_id(0), token("t").job_id(1)]);
}

case!(a_token_repeats_duplicates_too: R4 => ClientIds PushTokens Unique);
/// A repeated token returns the complete first result, including its duplicates.
async fn a_token_repeats_duplicates_too(store: &Store) {
    let actor = store.actor("producer").await;
    let holder = actor.store_one(NewJob::new("holder").unique(key("k"))).await;
    actor.store_one(mine()).await;
    let jobs = [NewJob::new("a"), NewJob::new("b").unique(key("k")), mine()];
    let first = actor.push(&jobs, Some(&token("t"))).await.expect("taken");
    drain(&actor).await;

    let again = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    assert_eq!(again, first);
    assert_eq!(first[0], Pushed::Stored(token("t").job_id(0)));
    assert_eq!(first[1], duplicate(&holder, DuplicateOf::UniqueKey));
    assert_eq!(first[2], duplicate(&id("mine"), DuplicateOf::Id));
    assert_eq!(actor.take(10).await, []);
}

case!(a_token_is_known_after_its_jobs_ended: R4 => PushTokens Delay);
/// A token stays known after the jobs of its push have ended.
async fn a_token_is_known_after_its_jobs_ended(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [NewJob::new("a"), NewJob::new("b").delay(HELD)];
    let first = actor.push(&jobs, Some(&token("t"))).await.expect("taken");
    drain(&actor).await;

    let again = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    assert_eq!(again, first);
    assert_eq!(actor.figures().await.ready, 0);
}

case!(two_tokens_are_two_calls: R4 => PushTokens);
/// Pushes of the same jobs with different tokens are different pushes.
async fn two_tokens_are_two_calls(store: &Store) {
    let actor = store.actor("producer").await;

    for name in ["t", "t-0", "T"] {
        actor.push(&[NewJob::new(name)], Some(&token(name))).await.expect("taken");
    }

    delivers(&actor, ["t", "t-0", "T"]).await;
}

case!(a_refused_push_uses_no_token_up: R4 R5 => PushTokens);
/// The token of a refused push can be used again.
async fn a_refused_push_uses_no_token_up(store: &Store) {
    let actor = store.actor("producer").await;
    let bad = NewJob::new("bad").lease(Duration::ZERO);
    let refused = actor.push(&[bad], Some(&token("t"))).await;
    assert!(refused.is_err(), "{refused:?}");

    actor.push(&[NewJob::new("good")], Some(&token("t"))).await.expect("taken");

    delivers(&actor, ["good"]).await;
}

case!(racing_calls_of_a_token_store_once: R4 R12 => PushTokens);
/// Many pushes use one token at the same time. One of them stores its jobs, and all
/// return the same result.
async fn racing_calls_of_a_token_store_once(store: &Store) {
    let jobs: Vec<NewJob> = numbered(10).into_iter().map(NewJob::new).collect();
    let mut calls = Vec::new();
    for index in 0..16 {
        let (actor, jobs) = (store.actor(&format!("p{index}")).await, jobs.clone());
        let call = async move { actor.push(&jobs, Some(&token("t"))).await };
        calls.push(tokio::spawn(call));
    }

    let mut answers = Vec::new();
    for call in calls {
        answers.push(call.await.expect("the call ends").expect("taken"));
    }

    assert!(answers.iter().all(|one| *one == answers[0]), "{answers:?}");
    delivers(&store.actor("w").await, numbered(10)).await;
}

case!(the_largest_call_can_be_repeated: R4 => PushTokens);
/// A push of the largest size can be repeated with its token and stores its jobs once.
async fn the_largest_call_can_be_repeated(store: &Store) {
    let actor = store.actor("producer").await;
    let most = actor.limits().max_jobs_per_call.get() as usize;
    let jobs: Vec<NewJob> = numbered(most).into_iter().map(NewJob::new).collect();
    let first = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    let again = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    assert_eq!(again, first);
    assert_eq!(actor.figures().await.ready, most as u64);
}

case!(a_token_of_no_jobs_is_taken: R4 => PushTokens);
/// A push of no jobs succeeds, also with a token.
async fn a_token_of_no_jobs_is_taken(store: &Store) {
    let actor = store.actor("producer").await;

    for _ in 0..2 {
        assert_eq!(actor.push(&[], Some(&token("t"))).await.expect("taken"), []);
    }

    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(a_token_leaves_client_ids_alone: R4 => ClientIds PushTokens);
/// If a push has a token and a job has a client-made id, the job keeps that id.
async fn a_token_leaves_client_ids_alone(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs = [NewJob::new("a"), mine()];

    let pushed = actor.push(&jobs, Some(&token("t"))).await.expect("taken");

    assert_eq!(pushed[1], Pushed::Stored(id("mine")));
    let ready = actor.list(JobState::Ready, 10).await;
    let ids = ready.into_iter().filter_map(|one| one.id);
    expect_exactly(ids, [token("t").job_id(0), id("mine")]);
}

case!(a_token_is_forgotten_after_the_window: R4 => PushTokens ClientIds);
/// A token becomes free five minutes after its first call.
async fn a_token_is_forgotten_after_the_window(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [NewJob::new("job")];
    actor.push(&jobs, Some(&token("t"))).await.expect("taken");
    drain(&actor).await;
    stay_within_window(store).await;
    actor.push(&jobs, Some(&token("t"))).await.expect("taken");
    assert_eq!(actor.figures().await.ready, 0, "known within the window");

    store.advance(PAST_WINDOW).await;

    actor.push(&jobs, Some(&token("t"))).await.expect("taken");
    delivers(&actor, ["job"]).await;
}

case!(pushes_forget_what_need_not_be_known: R4 => ClientIds PushTokens @ counted);
/// Each push removes the records of tokens and ids that have been kept for five
/// minutes, so that the store does not grow even if no reaper runs.
async fn pushes_forget_what_need_not_be_known(store: &Store) {
    let actor = store.actor("worker").await;
    let mut sizes = Vec::new();
    for round in 0..4 {
        for number in 0..20 {
            let name = format!("{round}-{number}");
            let job = NewJob::new("job").id(id(&name));
            actor.push(&[job], Some(&token(&name))).await.expect("taken");
            let held = actor.take_one().await;
            actor.finish(&held).await;
        }
        // The circular backend removes the elements of finished jobs when a claim
        // passes them.
        assert_eq!(actor.take(1).await, []);
        sizes.push(store.size().await);
        store.advance(PAST_WINDOW).await;
    }

    assert!(sizes[3] < sizes[1] + 20, "the store grows: {sizes:?}");
}

case!(a_large_push_forgets_as_much_as_it_adds: R4 => ClientIds @ counted);
/// A push of many jobs with ids removes as many ids that need not be known any longer, so
/// that the store of a producer of large pushes does not grow, either.
async fn a_large_push_forgets_as_much_as_it_adds(store: &Store) {
    const MANY: usize = 300;
    let actor = store.actor("worker").await;
    let mut sizes = Vec::new();
    for round in 0..4 {
        let job = |number| NewJob::new("job").id(id(&format!("{round}-{number}")));
        actor.store((0..MANY).map(job)).await;
        assert_eq!(drain(&actor).await.len(), MANY, "R1: all jobs of round {round}");
        sizes.push(store.size().await);
        store.advance(PAST_WINDOW).await;
    }

    assert!(sizes[3] <= sizes[1] + 50, "the store grows: {sizes:?}");
}

case!(a_token_that_meets_an_id_loses_nothing: R4 R1 => ClientIds PushTokens);
/// A token derives a job id that another job already has. No job is lost: the queue
/// delivers exactly the jobs that were reported as stored.
async fn a_token_that_meets_an_id_loses_nothing(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(NewJob::new("by id").id(token("t").job_id(0))).await;

    let jobs = [NewJob::new("by token")];
    let answer = actor.push(&jobs, Some(&token("t"))).await.unwrap_or_default();

    let stored = answer.iter().filter(|one| matches!(one, Pushed::Stored(_))).count();
    assert_eq!(actor.take(10).await.len(), 1 + stored);
    actor.release_worker(actor.worker()).await.expect("answered");
    assert_eq!(drain(&actor).await.len(), 1 + stored);
}
