//! Tests with payloads so large that a step of a call ends before it has as many jobs
//! as it may handle.

use std::num::NonZeroU16;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Delivery, Disposition, NewJob,
    capabilities::Capability,
    operator::{JobState, Selection},
};

use super::{PAGE, assert_in_order};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, expect_exactly, listed, payloads, retry_now, settle_all},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
};

/// Returns [`PAGE`] payloads. Each is two fifths of the bytes that one step may handle,
/// and its first byte is its number.
fn large() -> Vec<Bytes> {
    let payload = |number| {
        let mut payload = vec![b'x'; ClaimRequest::MAX_BYTES * 2 / 5];
        payload[0] = number;
        Bytes::from(payload)
    };
    (0..u8::try_from(PAGE).expect("few")).map(payload).collect()
}

/// Cuts each payload to its first byte, which is its number, so that a failure message
/// does not show megabytes.
fn numbers(payloads: Vec<Bytes>) -> Vec<Bytes> {
    payloads.into_iter().map(|payload| payload.slice(..1)).collect()
}

/// Claims all [`PAGE`] jobs. Returns the deliveries, and the numbers of their payloads.
async fn take_numbers(actor: &Actor) -> (Vec<relq_core::Delivery>, Vec<Bytes>) {
    let mut taken = Vec::new();
    // Several claims are needed, because the reply to one has room for only a few of
    // these large jobs.
    while taken.len() < PAGE {
        let more = actor.take(u32::try_from(PAGE).expect("few")).await;
        assert!(!more.is_empty(), "{} of {PAGE} jobs are claimed", taken.len());
        taken.extend(more);
    }
    let seen = numbers(payloads(&taken));
    (taken, seen)
}

case!(large_jobs_keep_their_order_in_every_call: R7 R9 R13 R23 R24);
/// Each call that moves jobs is made with jobs so large that only a few fit into one
/// step. It moves all of them, and they keep their order.
async fn large_jobs_keep_their_order_in_every_call(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let wanted = numbers(large());
    for payload in large() {
        actor.store_one(payload).await;
    }

    let (held, seen) = take_numbers(&actor).await;
    assert_in_order(&actor, seen, &wanted);
    settle_all(&actor, &held, &Disposition::GiveBack).await;
    let (held, seen) = take_numbers(&actor).await;
    assert_in_order(&actor, seen, &wanted);
    settle_all(&actor, &held, &retry_now()).await;
    actor.recover_all().await;
    let (_, seen) = take_numbers(&actor).await;
    assert_in_order(&actor, seen, &wanted);
    let released = actor.release_worker(actor.worker()).await.expect("released");
    assert_eq!(released.jobs, PAGE as u64);
    let seen = numbers(listed(&actor.list(JobState::Ready, 1000).await));
    assert_in_order(&actor, seen, &wanted);

    let (held, _) = take_numbers(&actor).await;
    settle_all(&actor, &held, &dead("never")).await;
    let seen = numbers(listed(&actor.list(JobState::Dead, 1000).await));
    expect_exactly(seen, wanted.clone());
    let redriven = actor.redrive(&Selection::All).await.expect("redriven");
    assert_eq!(redriven.moved, PAGE as u64);
    let (held, seen) = take_numbers(&actor).await;
    expect_exactly(seen, wanted);
    settle_all(&actor, &held, &dead("never")).await;
    let purged = actor.purge_dead(&Selection::All).await.expect("purged");
    assert_eq!(purged, PAGE as u64);
    assert_eq!(actor.figures().await.dead, 0);
}

case!(large_jobs_are_recovered_in_their_order: R9 R13 => JobLease);
/// The leases of large jobs expire, or delayed large jobs fall due, and one step of a
/// recovery has room for only a few. All of them become ready and keep their order.
async fn large_jobs_are_recovered_in_their_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let wanted = numbers(large());
    for payload in large() {
        actor.store_one(payload).await;
    }
    for _ in 0..PAGE {
        actor.take_one_briefly().await;
    }
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued as usize, PAGE);

    let (held, seen) = take_numbers(&actor).await;
    assert_in_order(&actor, seen, &wanted);
    settle_all(&actor, &held, &Disposition::Done).await;
    if actor.capabilities().supports(Capability::Delay) {
        for payload in large() {
            actor.store_one(NewJob::new(payload).delay(BRIEF)).await;
        }
        store.advance(PAST_BRIEF).await;
        actor.recover_all().await;
        let (held, seen) = take_numbers(&actor).await;
        assert_in_order(&actor, seen, &wanted);
        settle_all(&actor, &held, &Disposition::Done).await;
    }
}

case!(large_jobs_are_buried_by_a_recovery: R9 R11 => JobLease);
/// The leases of large jobs expire on their last attempt, and one step of a recovery has
/// room for only a few. The recovery says that there is more until all of them are buried.
async fn large_jobs_are_buried_by_a_recovery(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let once = |payload| NewJob::new(payload).max_attempts(NonZeroU16::MIN);
    for payload in large() {
        actor.store_one(once(payload)).await;
    }
    for _ in 0..PAGE {
        actor.take_one_briefly().await;
    }
    store.outlast_brief_leases().await;

    let recovered = actor.recover_all().await;

    let counts = (recovered.requeued, recovered.buried as usize);
    assert_eq!(
        counts,
        (0, PAGE),
        "R11: the jobs that one recovery after another buries"
    );
    let buried = numbers(listed(&actor.list(JobState::Dead, 1000).await));
    expect_exactly(buried, numbers(large()));
}

case!(a_claim_of_several_steps_counts_headers: R6);
/// The limit of 1 MiB holds for the headers of a claim that takes several steps, too.
async fn a_claim_of_several_steps_counts_headers(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let most = ClaimRequest::MAX_BYTES;
    let value = "x".repeat(most / PAGE / 3);
    let sent: Vec<_> =
        (0..4 * PAGE).map(|number| Bytes::from(number.to_string())).collect();
    for payload in &sent {
        let job = NewJob::new(payload.clone()).header("large", value.clone());
        actor.store_one(job).await;
    }

    let mut taken = Vec::new();
    while taken.len() < sent.len() {
        let claimed = actor.claim(&actor.ask(100)).await.expect("answered");
        let bytes: usize = claimed.iter().map(Delivery::total_bytes).sum();
        let jobs = claimed.len();
        assert!(bytes <= most, "R6: one claim takes {jobs} jobs of {bytes} bytes");
        assert_ne!(jobs, 0, "R1: {} jobs", taken.len());
        taken.extend(claimed);
    }

    let served = taken.iter().map(|one| one.payload.clone()).collect();
    assert_in_order(&actor, served, &sent);
    assert!(taken.iter().all(|one| one.attempt() == 1), "R11: each is its first");
}

case!(a_claim_of_several_steps_is_bounded_by_bytes: R6);
/// The limit of 1 MiB holds for a claim that takes several steps, also if the jobs of
/// the later steps are larger than those of the first. The first claim takes two jobs beyond
/// the limit. They are served next, in their order, and the claim counts as no attempt of
/// theirs.
async fn a_claim_of_several_steps_is_bounded_by_bytes(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let most = ClaimRequest::MAX_BYTES;
    let sizes = [most / 15; PAGE]
        .into_iter()
        .chain([most * 2 / 5])
        .chain([most / 4; 4])
        .chain([most * 2 / 5; 3])
        .chain([most / 10; 2 * PAGE])
        .chain([100; PAGE]);
    let sent: Vec<_> = sizes
        .zip(0..)
        .map(|(size, number)| {
            let mut payload = vec![b'x'; size];
            payload[0] = number;
            Bytes::from(payload)
        })
        .collect();
    for payload in &sent {
        actor.store_one(payload.clone()).await;
    }

    let mut taken = Vec::new();
    while taken.len() < sent.len() {
        let claimed = actor.claim(&actor.ask(100)).await.expect("answered");
        let bytes: usize = claimed.iter().map(|one| one.payload.len()).sum();
        assert!(
            bytes <= most,
            "R6: one claim takes {} jobs of {bytes} bytes",
            claimed.len(),
        );
        assert!(!claimed.is_empty(), "R1: {} of {} jobs", taken.len(), sent.len());
        taken.extend(claimed);
    }

    assert_in_order(&actor, numbers(payloads(&taken)), &numbers(sent));
    assert!(taken.iter().all(|one| one.attempt() == 1), "R11: each is its first");
}
