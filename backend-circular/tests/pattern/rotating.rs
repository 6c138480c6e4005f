//! Tests how the ring rotates, and what that costs (R9, R13).

use std::{
    num::NonZeroU16,
    time::{Duration, Instant},
};

use relq_circular::CircularQueue;
use relq_conformance::server::Server;
use relq_core::{outcome::Pushed, unique::UniqueKey, *};

use crate::fixture::*;

/// The maximum number of elements that one call of a script rotates.
const ROTATIONS: u64 = 1000;

/// The number of elements in process in front of a waiting job, in the middle of the
/// ring.
const IN_PROCESS: u32 = 5000;

/// The number of waiting jobs: more than a claim searches for at the head of the ring.
const WAITING: u32 = 40;

/// R21: one call rotates no more than its limit, and a claim makes at most one whole
/// rotation.
#[tokio::test]
async fn one_claim_makes_no_more_than_one_turn() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, IN_PROCESS).await;
    take(&queue, IN_PROCESS).await;
    push_many(&queue, WAITING).await;
    reset_calls(&server);

    let found = queue.claim_one(&ask("w")).await.unwrap();

    assert!(found.is_some());
    let rotated = calls(&server, "lmove");
    assert_eq!(rotated, u64::from(IN_PROCESS) + 1);
    let calls = scripts_sent(&server);
    assert!(calls <= rotated.div_ceil(ROTATIONS), "{calls} calls");
}

/// R21: a claim that finds nothing does not rotate the ring, however many jobs are in
/// process.
#[tokio::test]
async fn a_claim_that_finds_nothing_turns_nothing() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, IN_PROCESS).await;
    take(&queue, IN_PROCESS).await;
    reset_calls(&server);

    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    assert_eq!((calls(&server, "lmove"), scripts_sent(&server)), (0, 1));
}

/// A claim finds a few waiting jobs at the head although many are in process.
#[tokio::test]
async fn a_few_that_wait_cost_no_turn() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, IN_PROCESS).await;
    take(&queue, IN_PROCESS).await;
    for payload in ["a", "b", "c"] {
        push(&queue, payload).await;
    }
    reset_calls(&server);

    assert_eq!(take_one(&queue).await.payload, "a");

    assert_eq!((calls(&server, "lmove"), scripts_sent(&server)), (0, 1));
    assert_eq!(served(&queue).await, ["b", "c"]);
}

/// A claim of a backlog rotates one element per job, however many of the jobs are in
/// process.
#[tokio::test]
async fn a_backlog_costs_one_turn_a_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 3000).await;
    reset_calls(&server);

    for _ in 0..100 {
        let held = take(&queue, 20).await;
        finish(&queue, held).await;
    }

    assert_eq!(calls(&server, "lmove"), 2000);
}

/// R9, R13: a job whose lease expired keeps its position in the ring until a worker
/// takes it over.
#[tokio::test]
async fn a_job_that_comes_back_waits_its_turn() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for payload in ["a", "b", "c"] {
        push(&queue, payload).await;
    }
    assert_eq!(abandon(&queue).await.payload, "a");
    push(&queue, "d").await;
    until(&queue, |stats| stats.overdue == 1).await;

    assert_eq!(served(&queue).await, ["b", "c", "a", "d"]);
    assert_sound(&queue).await;
}

/// R6, R13: a job that a claim leaves because of its size keeps its position in the ring,
/// whether it waits for the first time, was released, or has lost its worker.
#[tokio::test]
async fn a_job_that_is_too_large_for_a_claim_stays_next() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for number in 0..4_u8 {
        let payload = vec![number; ClaimRequest::MAX_BYTES * 3 / 5];
        queue.push_one(NewJob::new(payload)).await.unwrap();
    }

    let pushed = claim_four(&queue, "first", LEASE).await;
    let released = queue.release_worker(&WorkerId::new("first").unwrap()).await;
    assert_eq!(released.unwrap().jobs, 4);
    let released = claim_four(&queue, "second", BRIEF).await;
    until(&queue, |stats| stats.overdue == 4).await;
    let lost = claim_four(&queue, "third", LEASE).await;

    let in_order = [0_u8, 1, 2, 3];
    assert_eq!(pushed, in_order, "R13: the order of pushed jobs");
    assert_eq!(released, in_order, "R13: the order of released jobs");
    assert_eq!(lost, in_order, "R13: the order of jobs whose leases have expired");
    assert_sound(&queue).await;
}

/// R13, R21: recovery drops large elements of ended jobs in steps of bounded bytes. While a
/// job waits, it keeps its position.
#[tokio::test]
async fn large_elements_are_dropped_in_bounded_steps() {
    const LARGE: usize = 12;
    const ENDED: usize = 8;
    // The small element at the tail, and so many large ones that they exceed 1 MiB.
    const MOST: u64 = 1 + 4;
    for waits in [true, false] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        push(&queue, "small").await;
        let small = ask("small");
        assert_eq!(queue.claim_one(&small).await.unwrap().unwrap().payload, "small");
        let large = NewJob::new(vec![b'x'; 300 * 1024]);
        queue.push(&vec![large; LARGE], None).await.unwrap();
        let mut held = Vec::new();
        while held.len() < LARGE {
            held.extend(queue.claim(&ask("w").max(many(100))).await.unwrap());
        }
        held.truncate(ENDED);
        finish(&queue, held).await;
        if waits {
            assert_eq!(queue.release_worker(&small.worker).await.unwrap().jobs, 1);
            push(&queue, "behind").await;
        }

        for _ in 0..10 {
            reset_calls(&server);
            queue.recover(many(100)).await.unwrap();
            let rotated = calls(&server, "lmove");
            let limit = if waits { 2 * MOST } else { MOST };
            assert!(
                rotated <= limit,
                "R21: {rotated} rotations, and a job waits: {waits}"
            );
        }

        if waits {
            assert_eq!(served(&queue).await, ["small", "behind"], "R13: the order");
        } else {
            let running = (1 + LARGE - ENDED) as u64;
            let length = length(&server);
            assert!(length < 2 * running, "{running} of {length} elements are running");
        }
        assert_sound(&queue).await;
    }
}

/// Makes four claims, each of which has room for one large job. Returns the first bytes of
/// their payloads.
async fn claim_four(queue: &CircularQueue, worker: &str, lease: Duration) -> Vec<u8> {
    let asking = ClaimRequest::new(WorkerId::new(worker).unwrap(), lease).max(many(10));
    let mut numbers = Vec::new();
    for _ in 0..4 {
        let claimed = queue.claim(&asking).await.unwrap();
        assert_eq!(claimed.len(), 1, "R6: two such jobs are too large for one claim");
        numbers.push(claimed[0].payload[0]);
    }
    numbers
}

/// R11: recovery finds and buries a job on its last attempt, even if the ring is longer
/// than one recovery call reads. The search does not change the order of the waiting
/// jobs.
#[tokio::test]
async fn the_last_attempt_is_buried_in_a_long_ring() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let once = NonZeroU16::MIN;
    queue.push_one(NewJob::new("poison").max_attempts(once)).await.unwrap();
    abandon(&queue).await;
    push_many(&queue, 2500).await;
    until(&queue, |stats| stats.overdue == 1).await;

    let mut buried = 0;
    loop {
        let page = queue.recover(many(100)).await.unwrap();
        buried += page.buried;
        if !page.more {
            break;
        }
    }

    assert_eq!((buried, queue.stats().await.unwrap().dead), (1, 1));
    assert_eq!(take_one(&queue).await.payload, "0");
    assert_sound(&queue).await;
}

/// R3, R11: without a reaper, a claim buries a job whose lease has expired on its last
/// attempt. Nothing of the job stays in the ring, and the job behind it is claimed.
#[tokio::test]
async fn a_claim_buries_a_job_on_its_last_attempt() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_one(NewJob::new("poison").max_attempts(NonZeroU16::MIN)).await.unwrap();
    abandon(&queue).await;
    push(&queue, "behind").await;
    until(&queue, |stats| stats.overdue == 1).await;

    assert_eq!(served(&queue).await, ["behind"], "R11: the jobs that are claimed");

    let stats = queue.stats().await.unwrap();
    let counts = (stats.dead, stats.leased, stats.ready);
    assert_eq!(counts, (1, 1, 0), "R3: `poison` is dead, and `behind` is leased");
    assert_eq!(length(&server), 1, "the elements: only `behind` is in the ring");
    assert_sound(&queue).await;
}

/// R9, R11: also if it is at the other end of the ring, which the reaper reaches last. A job
/// that is claimed goes to the head.
#[tokio::test]
async fn the_last_attempt_is_buried_at_the_head_of_a_long_ring() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_one(NewJob::new("poison").max_attempts(NonZeroU16::MIN)).await.unwrap();
    push_many(&queue, 2500).await;
    abandon(&queue).await;
    until(&queue, |stats| stats.overdue == 1).await;

    let mut calls = 1;
    while queue.recover(many(100)).await.unwrap().more {
        calls += 1;
        assert!(calls < 20, "recovery does not get on");
    }

    assert_eq!(queue.stats().await.unwrap().dead, 1);
    assert_sound(&queue).await;
}

/// R16, R17, R24: when a worker is released, a unique key that its job holds past the
/// job's expiry is freed at once, in a ring of any length.
#[tokio::test]
async fn a_release_frees_its_jobs_unique_key() {
    // Once the job is at the tail of a long ring, and once at its head; and once on its last
    // attempt.
    for (at_the_head, most) in [(false, 25), (true, 25), (false, 1)] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let attempts = NonZeroU16::new(most).unwrap();
        let unique =
            |payload| NewJob::new(payload).unique(UniqueKey::new("k").unwrap());
        // A machine that stands still must not let the job expire before it is claimed.
        let expiry = Duration::from_secs(3);
        let first = unique("first").expires_in(expiry).max_attempts(attempts);
        queue.push_one(first).await.unwrap();
        if at_the_head {
            push_many(&queue, 2500).await;
        }
        let held = take_one(&queue).await;
        if !at_the_head {
            push_many(&queue, 2500).await;
        }
        // This job becomes due after the other has expired.
        queue.push_one(NewJob::new("later").delay(expiry)).await.unwrap();
        until(&queue, |stats| stats.next_due_in == Some(Duration::ZERO)).await;
        let refused = queue.push_one(unique("second")).await.unwrap();
        assert_eq!(refused.job(), held.job(), "a job in process does not expire");

        assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 1);

        let stored = queue.push_one(unique("second")).await.unwrap();
        assert!(matches!(stored, Pushed::Stored(_)), "{stored:?}");
        assert_sound(&queue).await;
    }
}

/// R1, R9, R11: a lease that expires behind the reaper, while it looks through a long ring, is
/// found when the reaper looks at that place again.
#[tokio::test]
async fn a_lease_that_expires_behind_the_reaper_is_found() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let last_attempt = |payload| NewJob::new(payload).max_attempts(NonZeroU16::MIN);
    let claim = async |lease| {
        let asking = ClaimRequest::new(WorkerId::new("gone").unwrap(), lease);
        queue.claim_one(&asking).await.unwrap().unwrap().payload
    };
    queue.push_one(last_attempt("behind")).await.unwrap();
    queue.push_one(last_attempt("at the head")).await.unwrap();
    push_many(&queue, 1500).await;
    assert_eq!(claim(Duration::from_secs(3)).await, "behind");
    push_many(&queue, 1500).await;
    assert_eq!(claim(BRIEF).await, "at the head");
    until(&queue, |stats| stats.overdue == 1).await;

    // Two calls pass the first job. Its lease expires before the third.
    assert!(queue.recover(many(100)).await.unwrap().more);
    assert!(queue.recover(many(100)).await.unwrap().more);
    until(&queue, |stats| stats.overdue == 2).await;
    for _ in 0..10 {
        queue.recover(many(100)).await.unwrap();
    }

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.dead, stats.leased, stats.ready), (2, 0, 3000));
    assert_sound(&queue).await;
}

/// R1, R9: a claim that has made its most rotations without a find takes no lease away: leases
/// that have expired behind those are still found.
#[tokio::test]
async fn expired_leases_behind_the_most_rotations_are_found() {
    const EXPIRED: u32 = 20;
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, IN_PROCESS).await;
    take(&queue, IN_PROCESS).await;
    push_many(&queue, EXPIRED).await;
    for _ in 0..EXPIRED {
        abandon(&queue).await;
    }
    until(&queue, |stats| stats.overdue == u64::from(EXPIRED)).await;

    let mut again = Vec::new();
    let start = Instant::now();
    while again.len() < EXPIRED as usize {
        again.extend(queue.claim(&ask("w").max(many(100))).await.unwrap());
        assert!(start.elapsed() < LONG, "R1: {} of {EXPIRED} jobs", again.len());
    }

    assert!(again.iter().all(|it| it.attempt() == 2), "R11: {again:?}");
    let leased = u64::from(IN_PROCESS + EXPIRED);
    assert_eq!(queue.stats().await.unwrap().leased, leased);
    assert_sound(&queue).await;
}
