//! A server at its memory limit.

use std::{collections::BTreeSet, time::Duration};

use queue_core::{
    Cancelled, Capability, Error, Extended, Happened, JobState, NewJob, Queue, Receipt,
    ReliableQueueExt, Settled,
};

use super::stage::{
    LEASE, Stage, ask, eventually, fill, is_sound, many, payloads, take, worker_id,
};
use crate::server::Server;

/// OOM-DRAIN, R21: it refuses new jobs whole, and still works off the old.
pub(super) async fn a_full_server_is_drained_and_refuses_pushes(stage: &Stage) {
    let server = Server::start();
    let queue = stage.connect(&server).await;
    let leased = fill(&*queue).await;
    let ready = queue.stats().await.expect("answered").ready;
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);

    refuses(&*queue).await;
    let mut taken = take(&*queue, usize::try_from(ready).expect("few jobs")).await;
    let wanted: BTreeSet<_> = payloads(&taken).into_iter().collect();
    let [again, back] = [taken.remove(0), taken.remove(0)];
    let retried = queue.retry(&again.receipt, Duration::ZERO, "again").await;
    assert_eq!(retried.expect("answered"), Settled::Applied);
    let given_back = queue.give_back(&back.receipt).await;
    assert_eq!(given_back.expect("answered"), Settled::Applied);
    let held: Vec<Receipt> =
        taken.iter().chain([&leased]).map(|one| one.receipt.clone()).collect();
    let extended = queue.extend(&worker_id(), &held, LEASE).await.expect("answered");
    assert!(extended.iter().all(|one| matches!(one, Extended::Until(_))));
    queue.recover(many(100)).await.expect("answered");
    let cancelled = queue.cancel(leased.job()).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    for one in take(&*queue, 2).await {
        assert!(wanted.contains(&*String::from_utf8_lossy(&one.payload)));
        let settled = queue.ack(&one.receipt).await.expect("answered");
        assert_eq!(settled, Settled::Applied);
    }
    let left = queue.leave(&worker_id()).await.expect("answered");
    assert_eq!(left.jobs, taken.len() as u64);
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

/// New jobs are refused whole, in each way in which they are pushed.
async fn refuses(queue: &dyn Queue) {
    let has_delays = queue.capabilities().claims(Capability::Delay);
    let later = has_delays.then(|| NewJob::new("refused later").delay(LEASE));
    for job in std::iter::once(NewJob::new("refused")).chain(later) {
        let error = queue.push_one(job).await.expect_err("there is no room");
        assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
        assert_eq!(error.happened(), Happened::No);
    }
}
