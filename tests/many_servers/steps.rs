//! `?replicas=N`: a call of several steps takes all of them, although too few replicas
//! have one in time.

use std::{fmt::Debug, num::NonZeroU32, sync::Arc};

use relq::{
    ClaimRequest, Disposition, Error, JobId, NewJob, Queue, Receipt, Settlement,
    WorkerId,
    batch::{BatchId, NewBatch},
    connect_in,
    environment::Environment,
    operator::Selection,
};
use relq_conformance::server::Node;

use crate::{
    fixture::{LIMIT, master_and_replica, name, numbers, open},
    replicas::{BACKENDS, calls_of},
};

/// How many jobs a call is for. A step handles at most two of them.
const JOBS: usize = 5;

/// Opens a queue whose calls wait for a replica, and take steps of two jobs.
async fn in_steps(backend: &str, server: &Node) -> Arc<dyn Queue> {
    let options = "replicas=1&replica_timeout=200ms";
    let url = format!("{backend}+redis://{}?{options}", server.address());
    let two = NonZeroU32::new(2).unwrap();
    let environment = Environment::default().with_max_jobs_per_step(two);
    connect_in(environment, &url, &name()).await.unwrap()
}

/// Opens a queue whose calls do not wait for replicas.
async fn plain(backend: &str, server: &Node) -> Arc<dyn Queue> {
    open(&format!("{backend}+redis://{}", server.address())).await
}

/// Pushes jobs and claims them.
async fn lease_jobs(queue: &dyn Queue) -> Vec<Receipt> {
    let jobs: Vec<_> = numbers(JOBS).map(NewJob::new).collect();
    queue.push(&jobs, None).await.unwrap();
    let worker = WorkerId::new("worker").unwrap();
    let ask = ClaimRequest::new(worker, LIMIT).max(NonZeroU32::new(5).unwrap());
    let mut receipts = Vec::new();
    while receipts.len() < JOBS {
        let claimed = queue.claim(&ask).await.unwrap();
        receipts.extend(claimed.into_iter().map(|job| job.receipt));
    }
    receipts
}

fn settlements(receipts: Vec<Receipt>, disposition: &Disposition) -> Vec<Settlement> {
    let settlement = |receipt| Settlement::new(receipt, disposition.clone());
    receipts.into_iter().map(settlement).collect()
}

async fn bury_jobs(queue: &dyn Queue) {
    let dead = Disposition::Dead { error: "no".to_owned() };
    let done = settlements(lease_jobs(queue).await, &dead);
    queue.settle(&done).await.unwrap();
    assert_eq!(queue.stats().await.unwrap().dead, JOBS as u64);
}

fn assert_not_replicated<T: Debug>(outcome: Result<T, Error>, call: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::NotReplicated { .. }), "{call}: {error:?}");
    let message = error.full_message();
    assert!(message.contains("0 of 1 replicas had it"), "{call}: {message}");
}

/// R21: the error of a settlement says that it is done, so all of its steps are. A worker
/// that repeats it would otherwise never get past the first one. Only one step waits for
/// the replica.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_takes_all_steps() {
    for backend in BACKENDS {
        let (master, replica) = master_and_replica().await;
        let queue = in_steps(backend, &master).await;
        let plain = plain(backend, &master).await;
        for disposition in [Disposition::Done, Disposition::GiveBack] {
            let done = settlements(lease_jobs(&*plain).await, &disposition);
            let before = calls_of(&master, "wait");

            replica.freeze();
            assert_not_replicated(queue.settle(&done).await, backend);
            let waits = calls_of(&master, "wait") - before;
            replica.thaw();

            let leased = plain.stats().await.unwrap().leased;
            assert_eq!((leased, waits), (0, 1), "{backend} {disposition:?}");
        }
        assert_eq!(plain.stats().await.unwrap().finished, JOBS as u64, "{backend}");
    }
}

/// R21: the error of a redrive or a purge says that it is done, so no dead job is left.
#[tokio::test(flavor = "multi_thread")]
async fn all_dead_jobs_are_redriven_or_purged() {
    let (master, replica) = master_and_replica().await;
    let queue = in_steps("zset", &master).await;
    let plain = plain("zset", &master).await;
    let dead = || async { plain.stats().await.unwrap().dead };

    bury_jobs(&*plain).await;
    replica.freeze();
    assert_not_replicated(queue.redrive(&Selection::All).await, "redrive");
    assert_eq!(plain.stats().await.unwrap().ready, JOBS as u64);
    assert_eq!(dead().await, 0);

    replica.thaw();
    plain.purge().await.unwrap();
    bury_jobs(&*plain).await;
    replica.freeze();
    assert_not_replicated(queue.purge_dead(&Selection::All).await, "purge_dead");
    assert_eq!(dead().await, 0);
}

/// R21: the error of a cancel or a purge says that it is done, so no job is left. A cancel
/// searches the places where the job may be one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_and_running_jobs_are_cancelled_or_purged() {
    for backend in BACKENDS {
        let (master, replica) = master_and_replica().await;
        let queue = in_steps(backend, &master).await;
        let plain = plain(backend, &master).await;
        let left = async || {
            let stats = plain.stats().await.unwrap();
            stats.ready + stats.leased
        };
        let receipts = lease_jobs(&*plain).await;
        let waiting = JobId::new("waiting").unwrap();
        plain.push(&[NewJob::new("job").id(waiting.clone())], None).await.unwrap();

        replica.freeze();
        for job in [&waiting, receipts[0].job()] {
            assert_not_replicated(queue.cancel(job).await, backend);
        }
        assert_eq!(left().await, JOBS as u64 - 1, "{backend}");
        assert_not_replicated(queue.purge().await, backend);
        assert_eq!(left().await, 0, "{backend}");
        replica.thaw();
    }
}

/// R21: the error of a cancellation says that it is done, so no piece of the batch is left.
#[tokio::test(flavor = "multi_thread")]
async fn all_pieces_of_a_batch_are_cancelled() {
    let (master, replica) = master_and_replica().await;
    let queue = in_steps("stream", &master).await;
    let plain = plain("stream", &master).await;
    let (batches, batch) = (plain.batch_queue().unwrap(), BatchId::new("all").unwrap());
    batches.create(&NewBatch::new(batch.clone())).await.unwrap();
    let pieces: Vec<_> = numbers(JOBS).map(NewJob::new).collect();
    batches.add(&batch, &pieces, None).await.unwrap();

    replica.freeze();
    let cancelled = queue.batch_queue().unwrap().cancel_batch(&batch).await;

    assert_not_replicated(cancelled, "cancel_batch");
    let stats = plain.stats().await.unwrap();
    assert_eq!((stats.ready, stats.cancelled), (0, JOBS as u64));
}
