//! The search for a job that has no index, on every backend (R31).

use std::num::NonZeroU32;

use bytes::Bytes;
use relq_core::{
    JobId, NewJob,
    operator::{
        DeadGroups, JobLookup, JobSearch, JobState, Wanted, find_job, held_by_worker,
    },
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, expect_exactly, id, numbered, retry_after},
        store::Store,
        times::HELD,
    },
};

/// Asserts that a job is found in this state.
async fn assert_found(actor: &Actor, job: &JobId, state: JobState) {
    let found = find_job(&**actor, job).await.expect("answered");
    let JobLookup::Stored(found) = found else {
        panic!("R31: {job} is {}, and {found:?} is found", state.as_str())
    };
    assert_eq!((found.job.id.as_ref(), found.job.detail.state()), (Some(job), state));
}

case!(every_job_is_found_by_a_search: R31);
/// A job is found in each state, on a backend with and without an index.
async fn every_job_is_found_by_a_search(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store(numbered(3)).await;
    for (held, end) in actor.take(3).await.iter().zip([dead("no"), retry_after(HELD)]) {
        actor.say(held, end).await;
    }
    let ready = actor.store(numbered(4)).await;

    for job in &ready {
        assert_found(&actor, job, JobState::Ready).await;
    }
    let mut states = Vec::new();
    for job in &jobs {
        let found = find_job(&*actor, job).await.expect("answered");
        let JobLookup::Stored(found) = found else { panic!("R31: {job} is {found:?}") };
        states.push(found.job.detail.state().as_str());
    }
    expect_exactly(states, ["dead", "leased", "scheduled"]);
}

case!(an_unknown_job_is_not_found_by_a_search: R31);
/// No job is found by an id that no job has.
async fn an_unknown_job_is_not_found_by_a_search(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(3)).await;

    let found = find_job(&*actor, &id("unknown")).await.expect("answered");

    assert_eq!(found, JobLookup::Unknown, "R31");
}

case!(a_ready_leader_is_found_with_its_followers: R31 R30
    => Inspect Followers ClientIds Delay);
/// The record of a ready leader has its held followers in the order of their pushes, also
/// if a search found the leader.
async fn a_ready_leader_is_found_with_its_followers(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    actor.store_one(NewJob::new("due").delay(HELD)).await;
    for name in ["z", "a"] {
        actor.store_one(NewJob::new(name).id(id(name)).after(id("leader"))).await;
    }

    let found = find_job(&*actor, &id("leader")).await.expect("answered");

    let JobLookup::Stored(found) = found else { panic!("R31: {found:?}") };
    assert_eq!(
        found.followers,
        [id("z"), id("a")],
        "R30: in the order of their pushes"
    );
}

case!(a_text_is_found_in_each_place: R31);
/// A search finds the jobs whose payload, headers or errors contain a text, and no others.
async fn a_text_is_found_in_each_place(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["needle in the hay", "hay"]).await;
    actor.store_one(NewJob::new("tagged").header("kind", "a needle")).await;
    let search = |state| {
        let wanted = Wanted::default().text("needle");
        let queue = actor.queue();
        async move {
            let mut search = JobSearch::new(&*queue, state, wanted);
            let mut found = Vec::new();
            while let Some(page) = search.next_page().await.expect("answered") {
                found.extend(page.jobs.into_iter().map(|job| job.payload));
            }
            found
        }
    };
    let wanted = |names: &[&'static str]| {
        names.iter().map(|it| Bytes::from(*it)).collect::<Vec<_>>()
    };
    expect_exactly(
        search(JobState::Ready).await,
        wanted(&["needle in the hay", "tagged"]),
    );

    for held in actor.take(3).await {
        actor
            .say(&held, dead(if held.payload == "hay" { "a needle" } else { "no" }))
            .await;
    }

    expect_exactly(
        search(JobState::Dead).await,
        wanted(&["needle in the hay", "hay", "tagged"]),
    );
}

case!(dead_jobs_are_grouped_by_their_errors: R31 R11);
/// Dead letters whose errors differ only in numbers are one group.
async fn dead_jobs_are_grouped_by_their_errors(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(5)).await;
    for (at, held) in actor.take(5).await.iter().enumerate() {
        let error =
            if at < 3 { format!("no user {at}") } else { "timed out".to_owned() };
        actor.say(held, dead(&error)).await;
    }

    let mut dead = DeadGroups::new(NonZeroU32::new(100).expect("not zero"));
    while dead.read_page(&*actor).await.expect("answered") {}

    let groups: Vec<_> =
        dead.groups().into_iter().map(|one| (one.error, one.jobs.len())).collect();
    assert_eq!(
        groups,
        [("no user #".to_owned(), 3), ("timed out".to_owned(), 2)],
        "R31"
    );
    assert!(!dead.is_cut(), "R31: all were read");
}

case!(the_jobs_of_each_worker_are_listed: R31);
/// The leased jobs are listed by the worker that holds them.
async fn the_jobs_of_each_worker_are_listed(store: &Store) {
    let (one, two) = (store.actor("one").await, store.actor("two").await);
    one.store(numbered(5)).await;
    one.take(3).await;
    two.take(2).await;

    let limit = NonZeroU32::new(100).expect("not zero");
    let (held, is_cut) = held_by_worker(&*one, limit).await.expect("answered");

    let counts: Vec<_> =
        held.iter().map(|(worker, jobs)| (worker, jobs.len())).collect();
    assert_eq!((counts, is_cut), (vec![(one.worker(), 3), (two.worker(), 2)], false));
    let (held, is_cut) =
        held_by_worker(&*one, NonZeroU32::MIN).await.expect("answered");
    assert_eq!((held.len(), is_cut), (1, true), "R31: cut at one job");
}
