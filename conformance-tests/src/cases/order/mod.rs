//! The order in which jobs are delivered (R13, R15).

mod priorities;

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Disposition,
    capabilities::LeaseScope,
    operator::{JobState, Selection},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            assert_in_line, dead, drain, listed, numbered, payloads, postpone,
            retry_now, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD},
    },
    spec::line::Line,
};

/// Drains the queue, and asserts that the deliveries come in the order of `line`.
async fn serves(actor: &Actor, line: Line) {
    assert_in_line(actor, &drain(actor).await, &line);
}

case!(a_batch_keeps_its_order: R13 => Order);
/// Jobs of one push are delivered in their order in the push, also if a claim waits for one.
async fn a_batch_keeps_its_order(store: &Store) {
    let (actor, waiter) = (store.actor("worker").await, store.actor("waiter").await);
    actor.store(numbered(300)).await;

    serves(&actor, Line::of(numbered(300))).await;

    let claim = tokio::spawn(async move { waiter.take_waiting(1, HELD).await });
    store.settled().await;
    actor.store(numbered(5)).await;
    let (first, _) = store.within(store.response_limit(), claim).await;
    let mut served = first.expect("the claim ends");
    served.extend(drain(&actor).await);
    assert_in_line(&actor, &served, &Line::of(numbered(5)));
}

case!(batches_keep_their_order: R13 => Order);
/// Jobs of several pushes are delivered in the order of the pushes, even if different
/// producers made them.
async fn batches_keep_their_order(store: &Store) {
    let producers = [store.actor("p1").await, store.actor("p2").await];
    for (index, batch) in numbered(100).chunks(7).enumerate() {
        producers[index % 2].store(batch.to_vec()).await;
    }

    let mut one_by_one = Vec::new();
    for _ in 0..100 {
        let held = producers[0].take_one().await;
        producers[0].finish(&held).await;
        one_by_one.push(held);
    }

    assert_in_line(&producers[0], &one_by_one, &Line::of(numbered(100)));
}

case!(a_given_back_job_is_next: R13 => Order);
/// A job that was given back is delivered next, or at its original position. It does
/// not move behind jobs that were pushed later.
async fn a_given_back_job_is_next(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;

    actor.say(&held, Disposition::GiveBack).await;
    actor.store_one("d").await;

    let line = Line::of(["b", "c"]).and_back(&actor.class(), ["a"]).and_then(["d"]);
    serves(&actor, line).await;
}

/// How long a claim waits in a pause.
const IN_VAIN: Duration = Duration::from_millis(600);

case!(a_job_given_back_in_a_pause_is_next: R13 R23 => Order);
/// A job that is given back while the queue is paused is delivered next, or at its original
/// position. A claim that waited when the pause began may have moved a job that was pushed
/// later, and must not leave it at the front.
async fn a_job_given_back_in_a_pause_is_next(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor("o").await);
    other.store_one("back").await;
    let held = other.take_one().await;
    let claim = tokio::spawn(async move { worker.take_waiting(1, IN_VAIN).await });
    store.settled().await;
    other.pause().await.expect("answered");
    other.store_one("pushed").await;
    let (taken, _) = store.within(IN_VAIN + store.response_limit(), claim).await;
    assert_eq!(taken.expect("the claim ends"), [], "R23: the queue is paused");

    other.say(&held, Disposition::GiveBack).await;
    other.resume().await.expect("answered");

    serves(&other, Line::of(["pushed"]).and_back(&other.class(), ["back"])).await;
}

case!(jobs_moved_for_claims_in_a_pause_keep_their_order: R13 R23 => Order JobLease);
/// Several claims of several workers wait when a pause begins, and each may move one of the
/// jobs that are then pushed. These jobs keep their order, and a job that was given back in
/// the pause comes before them, or at its original position. Where a lease is that of a
/// worker, each worker has moved jobs of its own, so the order of two workers is not known.
async fn jobs_moved_for_claims_in_a_pause_keep_their_order(store: &Store) {
    let workers = [store.actor("w1").await, store.actor("w2").await];
    let other = store.actor("o").await;
    other.store_one("back").await;
    let held = other.take_one().await;
    let mut claims = Vec::new();
    for worker in workers.iter().flat_map(|worker| [worker, worker]) {
        let worker = worker.clone();
        claims.push(tokio::spawn(async move { worker.take_waiting(1, IN_VAIN).await }));
    }
    store.settled().await;
    other.pause().await.expect("answered");
    other.store(numbered(5)).await;
    for claim in claims {
        let (taken, _) = store.within(IN_VAIN + store.response_limit(), claim).await;
        assert_eq!(taken.expect("the claim ends"), [], "R23: the queue is paused");
    }

    other.say(&held, Disposition::GiveBack).await;
    other.resume().await.expect("answered");

    let line = Line::of(numbered(5)).and_back(&other.class(), ["back"]);
    serves(&other, line).await;
}

/// Eight jobs were pushed, and the first five were claimed and then came back. Returns
/// the order in which the eight must be delivered.
fn five_of_eight_back(actor: &Actor) -> Line {
    let (first, rest) = (numbered(8), numbered(8).split_off(5));
    Line::of(rest).and_back(&actor.class(), first.into_iter().take(5))
}

case!(given_back_jobs_keep_their_order: R13 => Order);
/// Jobs that are given back in one call keep their order, at the front or in their
/// original positions.
async fn given_back_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    let held = actor.take(5).await;

    settle_all(&actor, &held, &Disposition::GiveBack).await;

    serves(&actor, five_of_eight_back(&actor)).await;
}

case!(released_jobs_keep_their_order: R13 R24 => Order);
/// The jobs of a released worker keep their order, at the front or in their
/// original positions.
async fn released_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take(2).await;
    actor.take(3).await;

    actor.release_worker(actor.worker()).await.expect("answered");

    serves(&actor, five_of_eight_back(&actor)).await;
}

case!(recovered_jobs_keep_their_order: R13 R9 => Order);
/// Recovered jobs keep their order, at the front or in their original
/// positions.
async fn recovered_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take_briefly(5).await;
    store.outlast_brief_leases().await;

    actor.recover_all().await;

    serves(&actor, five_of_eight_back(&actor)).await;
}

case!(pages_of_recovery_keep_the_order: R13 R9 => Order);
/// Recovered jobs keep their order when a page of the recovery holds only some
/// of them.
async fn pages_of_recovery_keep_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(8)).await;
    actor.take_briefly(5).await;
    store.outlast_brief_leases().await;

    let page = NonZeroU32::new(2).expect("not zero");
    while actor.recover(page).await.expect("answered").more {}

    serves(&actor, five_of_eight_back(&actor)).await;
}

case!(extended_jobs_keep_their_order: R13 R9 => Order);
/// Jobs that are recovered together keep their order, whichever lease ended first, and
/// whatever the names of their workers. Where a lease is that of a worker, its jobs are
/// recovered together, and those of another worker before or after them.
async fn extended_jobs_keep_their_order(store: &Store) {
    let first = store.actor("zoe").await;
    let is_of_worker = first.capabilities().lease_scope == LeaseScope::Worker;
    let second = if is_of_worker { first.clone() } else { store.actor("ann").await };
    first.store(numbered(8)).await;
    let held = [first.take_briefly(3).await, second.take_briefly(2).await];
    store.advance(BRIEF / 4).await;
    for (holder, held) in [&first, &second].into_iter().zip(&held) {
        let receipts = std::slice::from_ref(&held[0].receipt);
        holder.extend(holder.worker(), receipts, BRIEF).await.expect("answered");
    }
    store.outlast_brief_leases().await;

    first.recover_all().await;

    serves(&first, five_of_eight_back(&first)).await;
}

case!(a_retried_job_goes_to_the_back: R13 => Order);
/// A job that failed and is retried at once is delivered after the jobs that were ready, and
/// before a job that is pushed later.
async fn a_retried_job_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;

    actor.say(&held, retry_now()).await;
    actor.store_one("d").await;
    actor.recover_all().await;

    serves(&actor, Line::of(["b", "c"]).and_then(["a"]).and_then(["d"])).await;
}

case!(a_postponed_job_goes_to_the_back: R13 R26 => Order);
/// A job that is postponed for no time is delivered after the jobs that were ready, and
/// before a job that is pushed later.
async fn a_postponed_job_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;

    actor.say(&held, postpone(Duration::ZERO)).await;
    actor.store_one("d").await;

    serves(&actor, Line::of(["b", "c"]).and_then(["a"]).and_then(["d"])).await;
}

case!(a_redriven_job_goes_to_the_back: R13 => Order);
/// A redriven job is delivered after the jobs that were already ready.
async fn a_redriven_job_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b", "c"]).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    actor.redrive(&Selection::All).await.expect("answered");

    serves(&actor, Line::of(["b", "c"]).and_then(["a"])).await;
}

case!(redriven_jobs_keep_their_order: R13 R23 => Order);
/// Jobs that died together are listed in the order in which they died, page
/// by page, and are redriven in that order.
async fn redriven_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(30)).await;
    let held = actor.take(30).await;
    settle_all(&actor, &held, &dead("no")).await;

    let letters = listed(&actor.list(JobState::Dead, 7).await);
    actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(letters, payloads(&held));
    serves(&actor, Line::default().and_then(payloads(&held))).await;
}

case!(many_recovered_jobs_keep_their_order: R13 R9 => Order);
/// Many jobs whose leases expire together keep their order, over several
/// claims of one worker.
async fn many_recovered_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(39)).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        held.extend(actor.take_briefly(13).await);
    }
    store.outlast_brief_leases().await;

    actor.recover_all().await;

    serves(&actor, Line::default().and_back(&actor.class(), payloads(&held))).await;
}

case!(many_given_back_jobs_keep_their_order: R13 => Order);
/// Many jobs that are given back in one call keep their order.
async fn many_given_back_jobs_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(39)).await;
    let held = actor.take(39).await;

    settle_all(&actor, &held, &Disposition::GiveBack).await;

    serves(&actor, Line::default().and_back(&actor.class(), payloads(&held))).await;
}

case!(a_peek_shows_the_order: R13 => Order);
/// A peek lists jobs in the order of their delivery.
async fn a_peek_shows_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(30)).await;

    let seen = listed(&actor.list(JobState::Ready, 7).await);

    assert_eq!(seen, payloads(&drain(&actor).await));
}
