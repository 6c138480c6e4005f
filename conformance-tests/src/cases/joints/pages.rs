//! Pages end early when their jobs are large.

use std::num::NonZeroU32;

use relq_core::{
    ClaimRequest, Delivery, NewJob,
    limits::{MAX_ERROR_BYTES, MAX_JOBS_PER_CALL},
    operator::{JobState, JobView, PeekRequest},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, settle_all},
        store::Store,
    },
};

/// How many bytes the jobs of a case have in total: several pages.
const ALL: usize = 3 * ClaimRequest::MAX_BYTES;

case!(pages_of_large_payloads_end_early: R21 R23);
/// A page of jobs with large payloads ends early in each state.
async fn pages_of_large_payloads_end_early(store: &Store) {
    const LARGE: usize = ClaimRequest::MAX_BYTES / 8;
    let jobs = vec![NewJob::new(vec![b'x'; LARGE]); ALL / LARGE];
    in_each_state(&store.actor("worker").await, &jobs).await;
}

case!(pages_of_large_headers_end_early: R21 R23);
/// A page of jobs with large headers ends early in each state.
async fn pages_of_large_headers_end_early(store: &Store) {
    let actor = store.actor("worker").await;
    let large = actor.limits().max_headers;
    let job = NewJob::new("job").header("large", "x".repeat(large - "large".len()));
    in_each_state(&actor, &vec![job; ALL / large]).await;
}

case!(pages_of_long_errors_end_early: R21 R23);
/// A page of dead jobs with long errors ends early.
async fn pages_of_long_errors_end_early(store: &Store) {
    let actor = store.actor("worker").await;
    let count = ALL / MAX_ERROR_BYTES;
    let jobs = vec![NewJob::new("job"); count];
    for call in jobs.chunks(MAX_JOBS_PER_CALL.get() as usize) {
        actor.store(call.to_vec()).await;
    }
    let held = take_all(&actor, count).await;
    settle_all(&actor, &held, &dead(&"x".repeat(MAX_ERROR_BYTES))).await;
    assert_pages_are_small(&actor, JobState::Dead, count).await;
}

/// Stores the jobs, and reads the pages of them while they are ready, leased and dead.
async fn in_each_state(actor: &Actor, jobs: &[NewJob]) {
    for job in jobs {
        actor.store_one(job.clone()).await;
    }
    assert_pages_are_small(actor, JobState::Ready, jobs.len()).await;
    let held = take_all(actor, jobs.len()).await;
    assert_pages_are_small(actor, JobState::Leased, jobs.len()).await;
    settle_all(actor, &held, &dead("never")).await;
    assert_pages_are_small(actor, JobState::Dead, jobs.len()).await;
}

/// Claims that many jobs. One claim does not take all of them, because they are large.
async fn take_all(actor: &Actor, count: usize) -> Vec<Delivery> {
    let mut held = Vec::new();
    while held.len() < count {
        let ask = actor.ask(MAX_JOBS_PER_CALL.get());
        let mut more = actor.claim(&ask).await.expect("answered");
        let bytes: usize =
            more.iter().map(|job| job.payload.len() + job.headers.total_bytes()).sum();
        let is_small = bytes <= ClaimRequest::MAX_BYTES || more.len() == 1;
        assert!(is_small, "R6: a claim of {} jobs has {bytes} bytes", more.len());
        if more.is_empty() {
            // One claim of the circular list may pass only jobs that are leased.
            more = actor.take(MAX_JOBS_PER_CALL.get()).await;
        }
        assert!(!more.is_empty(), "R1: {} of {count} jobs are claimed", held.len());
        held.extend(more);
    }
    held
}

/// Asserts that the pages of the jobs in a state have all jobs, and that each page has
/// about as many bytes as a step may move.
async fn assert_pages_are_small(actor: &Actor, state: JobState, count: usize) {
    let many = NonZeroU32::new(1000).expect("not zero");
    let (mut ask, mut listed) = (PeekRequest::new(state, many), 0);
    loop {
        let page = actor.peek(&ask).await.expect("answered");
        let bytes: usize = page.jobs.iter().map(JobView::total_bytes).sum();
        let most = 2 * ClaimRequest::MAX_BYTES;
        assert!(
            bytes <= most,
            "R21: a page of {} jobs has {bytes} bytes",
            state.as_str()
        );
        listed += page.jobs.len();
        let Some(next) = page.next else { break };
        ask = ask.after(next);
    }
    assert_eq!(listed, count, "R23: {} jobs", state.as_str());
}
