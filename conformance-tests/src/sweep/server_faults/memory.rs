//! A server that has reached its memory limit.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use relq_core::{
    Delivery, Error, NewJob, Queue, Receipt, ReliableQueueExt,
    batch::BatchOutcome,
    capabilities::Capability,
    error::Effect,
    operator::{Cancelled, JobState},
    outcome::{Extended, Settled},
};

use super::{
    batches::{batches, elsewhere, named, plain, status, submit, telling},
    fixture::{
        FaultFixture, LEASE, ask, eventually, fill, is_sound, many, payloads,
        recover_all, take, worker_id,
    },
};
use crate::server::Server;

/// OOM-DRAIN, R21: a full server refuses new jobs completely, and its jobs can still be
/// claimed and finished.
pub(super) async fn a_full_server_is_drained_and_refuses_pushes(
    fixture: &FaultFixture,
) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    let leased = fill(&*queue).await;
    let ready = queue.stats().await.expect("answered").ready;
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);

    refuses(&*queue).await;
    let taken = take(&*queue, usize::try_from(ready).expect("few jobs")).await;
    settles_and_extends(&*queue, taken, &leased).await;
    is_sound(&*queue).await;
    let patient = ask(1).wait(LEASE);
    eventually("the rest", async || {
        for one in queue.claim(&patient).await.expect("claimed") {
            queue.ack(&one.receipt).await.expect("answered");
        }
        queue.stats().await.expect("answered").ready == 0
    })
    .await;
}

/// A full server carries out each call that frees memory or needs none: it settles,
/// extends, recovers, cancels and releases jobs.
async fn settles_and_extends(
    queue: &dyn Queue,
    mut taken: Vec<Delivery>,
    leased: &Delivery,
) {
    let wanted: BTreeSet<_> = payloads(&taken).into_iter().collect();
    let [again, back] = [taken.remove(0), taken.remove(0)];
    let retried = queue.retry(&again.receipt, Duration::ZERO, "again").await;
    assert_eq!(retried.expect("answered"), Settled::Applied);
    let given_back = queue.give_back(&back.receipt).await;
    assert_eq!(given_back.expect("answered"), Settled::Applied);
    let held: Vec<Receipt> =
        taken.iter().chain([leased]).map(|one| one.receipt.clone()).collect();
    let extended = queue.extend(&worker_id(), &held, LEASE).await.expect("answered");
    assert!(extended.iter().all(|one| matches!(one, Extended::Until(_))));
    queue.recover(many(100)).await.expect("answered");
    let cancelled = queue.cancel(leased.job()).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    for one in take(queue, 2).await {
        assert!(wanted.contains(&*String::from_utf8_lossy(&one.payload)));
        let settled = queue.ack(&one.receipt).await.expect("answered");
        assert_eq!(settled, Settled::Applied);
    }
    let left = queue.release_worker(&worker_id()).await.expect("answered");
    assert_eq!(left.jobs, taken.len() as u64);
}

/// OOM-DRAIN, R1, R23: when the server has no room for one more job, a worker still
/// runs all jobs, however many it runs at once. No job is left behind, and none runs
/// twice.
pub(super) async fn a_server_full_to_the_brim_is_drained_by_any_worker(
    fixture: &FaultFixture,
) {
    for slots in [1, 16, 64].map(|slots| NonZeroU32::new(slots).expect("not zero")) {
        let server = Server::start();
        let queue = fixture.connect(&server).await;
        server.command(&[b"CONFIG", b"SET", b"maxmemory", b"20mb"]);
        let stored = fill_to_the_brim(&*queue).await;
        assert!(stored > 500, "there is room for {stored} jobs");

        let worker = fixture.work_with(&server, slots).await;
        let (mut finished, mut left) = (0, stored);
        while left > 0 {
            eventually("the end of another job", async || {
                let stats = queue.stats().await.expect("answered");
                left = stats.ready + stats.leased;
                std::mem::replace(&mut finished, stats.finished) < stats.finished
            })
            .await;
        }

        worker.end().await;
        let finished = queue.stats().await.expect("answered").finished;
        assert_eq!(finished, stored, "with {slots} slots");
        is_sound(&*queue).await;
    }
}

/// Pushes jobs until the server refuses even one. Returns how many it accepted.
async fn fill_to_the_brim(queue: &dyn Queue) -> u64 {
    let mut stored = 0;
    for at_once in [100, 10, 1] {
        let jobs = vec![NewJob::new("x".repeat(8000)); at_once];
        loop {
            match queue.push(&jobs, None).await {
                Ok(pushed) => stored += pushed.len() as u64,
                Err(error) => {
                    assert!(matches!(error, Error::Full { .. }), "{error}");
                    break;
                }
            }
        }
    }
    stored
}

/// OOM-DRAIN, B5, R21: a full server refuses new batches and new pieces completely, and
/// its batches still complete. A completion job in the same queue is pushed at once,
/// and one in another queue as soon as there is room.
pub(super) async fn a_full_server_completes_batches(fixture: &FaultFixture) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    if queue.batch_queue().is_none() {
        assert!(
            !queue.capabilities().supports(Capability::Batches),
            "they are claimed"
        );
        return println!("unsupported: {:?}", Capability::Batches);
    }
    let told = fixture.connect_to(&server, &elsewhere()).await;
    submit(&*queue, &telling("stored", 2), &["one", "two", "three"]).await;
    let open = batches(&*queue).create(&telling("open", 1)).await;
    open.expect("there is room");
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);

    refuses_batches(&*queue).await;
    eventually("the end of all pieces", async || {
        for one in queue.claim(&ask(9)).await.expect("claimed") {
            let settled = queue.ack(&one.receipt).await.expect("answered");
            assert_eq!(settled, Settled::Applied);
        }
        status(&*queue, "stored").await.outcome() == Some(BatchOutcome::Done)
    })
    .await;
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
    recover_all(&*queue).await;
    assert_eq!(payloads(&take(&*told, 1).await), ["stored"]);
    assert_eq!(told.stats().await.expect("answered").ready, 0);
    is_sound(&*queue).await;
}

async fn refuses_batches(queue: &dyn Queue) {
    let batches = batches(queue);
    let made = batches.create(&telling("refused", 1)).await;
    let added = batches.add(&named("open"), &plain(&["refused"]), None).await;
    for error in [made.expect_err("no room"), added.expect_err("no room")] {
        assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
        assert_eq!(error.effect(), Effect::No);
    }
    assert_eq!(status(queue, "open").await.total, 0);
}

/// Asserts that the server refuses new jobs completely, both jobs that would be ready
/// at once and, if the backend supports them, delayed jobs.
async fn refuses(queue: &dyn Queue) {
    let has_delays = queue.capabilities().supports(Capability::Delay);
    let later = has_delays.then(|| NewJob::new("refused later").delay(LEASE));
    for job in std::iter::once(NewJob::new("refused")).chain(later) {
        let error = queue.push_one(job).await.expect_err("there is no room");
        assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
        assert_eq!(error.effect(), Effect::No);
    }
}
