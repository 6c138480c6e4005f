//! Calls for more jobs than one step handles (R21). Each step is a transaction of its own, so
//! that other processes can write between two steps. Large calls that wait together share a
//! transaction only up to a limit, for the same reason.

use std::{
    future::Future,
    sync::{Arc, Mutex},
};

use futures_util::future::join_all;
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, NewJob, Operator as _, Receipt,
    ReliableQueue as _, Settlement,
    environment::Environment,
    outcome::{Extended, Settled},
    results::MAX_RESULT,
};
use relq_sqlite::{SqliteQueue, testing::at_each_step};

use crate::fixture::{Folder, LONG, ask, many, open, raw};
use crate::followers::{claim, named, push, recorder};
use crate::pages::{jobs, steps_of};

/// A queue whose statements are recorded.
struct Recorded {
    folder: Folder,
    queue: SqliteQueue,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Recorded {
    async fn with(environment: Environment) -> Self {
        let (folder, (watch, seen)) = (Folder::new(), recorder());
        let config = folder.config().environment(environment);
        let queue = open(at_each_step(config, watch)).await.unwrap();
        Self { folder, queue, seen }
    }

    /// A queue with steps of four jobs, and ten jobs that are leased.
    async fn with_leases() -> (Self, Vec<Receipt>) {
        let recorded = Self::with(steps_of(4)).await;
        recorded.queue.push(&jobs(10), None).await.unwrap();
        let held = claim(&recorded.queue, 10).await;
        assert_eq!(held.len(), 10);
        recorded.write_transactions();
        (recorded, held)
    }

    /// How many transactions have written the file, or found it locked, since the last call.
    fn write_transactions(&self) -> usize {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.iter().filter(|sql| *sql == "BEGIN IMMEDIATE").count()
    }

    /// How many transactions the calls take if they wait together, while another connection
    /// holds the file's lock.
    async fn transactions_of<T>(
        &self,
        calls: impl IntoIterator<Item = impl Future<Output = Result<T, Error>>>,
    ) -> usize {
        let gate = raw(&self.folder.file());
        gate.execute_batch("BEGIN IMMEDIATE").unwrap();
        self.write_transactions();
        let open_gate = async { gate.execute_batch("COMMIT").unwrap() };
        let (answers, ()) = tokio::join!(join_all(calls), open_gate);
        answers.into_iter().for_each(|answer| drop(answer.unwrap()));
        self.write_transactions()
    }
}

fn settlements(held: &[Receipt], disposition: &Disposition) -> Vec<Settlement> {
    held.iter().map(|it| Settlement::new(it.clone(), disposition.clone())).collect()
}

#[tokio::test]
async fn a_claim_of_many_jobs_takes_steps() {
    let recorded = Recorded::with(steps_of(4)).await;
    recorded.queue.push(&jobs(10), None).await.unwrap();
    recorded.write_transactions();

    assert_eq!(claim(&recorded.queue, 9).await.len(), 9);

    assert_eq!(recorded.write_transactions(), 3);
}

#[tokio::test]
async fn a_settlement_of_many_jobs_takes_steps() {
    let (recorded, held) = Recorded::with_leases().await;

    let done = settlements(&held, &Disposition::Done);
    assert_eq!(recorded.queue.settle(&done).await.unwrap(), [Settled::Applied; 10]);

    assert_eq!(recorded.write_transactions(), 3);
}

/// The first step of the claim is in the transaction of the settlements.
#[tokio::test]
async fn a_claim_of_many_jobs_beside_a_settlement_takes_steps() {
    let (recorded, held) = Recorded::with_leases().await;
    recorded.queue.push(&jobs(6), None).await.unwrap();
    recorded.write_transactions();

    let done = settlements(&held[..4], &Disposition::Done);
    let six = ask("w").max(many(6));
    let both = recorded.queue.settle_and_claim(&done, &six).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied; 4]);
    assert_eq!(both.claimed.unwrap().len(), 6);
    assert_eq!(recorded.write_transactions(), 2);
}

/// The claim comes behind the last step of the settlements, so that it finds their jobs.
#[tokio::test]
async fn a_claim_beside_settlements_of_several_steps_finds_their_jobs() {
    let (recorded, held) = Recorded::with_leases().await;

    let back = settlements(&held[..5], &Disposition::GiveBack);
    let five = ask("w").max(many(5));
    let both = recorded.queue.settle_and_claim(&back, &five).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied; 5]);
    let claimed = both.claimed.unwrap();
    let claimed: Vec<_> = claimed.iter().map(Delivery::job).collect();
    assert_eq!(claimed, held[..5].iter().map(Receipt::job).collect::<Vec<_>>());
    assert_eq!(recorded.write_transactions(), 4);
}

/// R29: a step stores as many bytes of results as a claim returns, or one result.
#[tokio::test]
async fn a_settlement_with_large_results_takes_steps() {
    let recorded = Recorded::with(Environment::default()).await;
    let kept: Vec<_> = jobs(3).into_iter().map(|job| job.keep_result(LONG)).collect();
    recorded.queue.push(&kept, None).await.unwrap();
    let held = claim(&recorded.queue, 3).await;
    recorded.write_transactions();

    let result = vec![b'x'; MAX_RESULT].into();
    let done = settlements(&held, &Disposition::DoneWith { result });
    assert_eq!(recorded.queue.settle(&done).await.unwrap(), [Settled::Applied; 3]);

    assert_eq!(recorded.write_transactions(), 3);
}

#[tokio::test]
async fn a_heartbeat_of_many_jobs_takes_steps() {
    let (recorded, held) = Recorded::with_leases().await;

    let extended = recorded.queue.extend(&ask("w").worker, &held, LONG).await.unwrap();

    assert_eq!(extended.len(), 10);
    let is_held = |it: &Extended| matches!(it, Extended::Until(_));
    assert!(extended.iter().all(is_held), "{extended:?}");
    assert_eq!(recorded.write_transactions(), 3);
}

#[tokio::test]
async fn a_release_of_many_jobs_takes_steps() {
    let (recorded, _) = Recorded::with_leases().await;

    let released = recorded.queue.release_worker(&ask("w").worker).await.unwrap();

    assert_eq!(released.jobs, 10);
    assert_eq!(recorded.write_transactions(), 3);
    assert_eq!(recorded.queue.stats().await.unwrap().ready, 10);
}

/// R17: a claim buries the expired jobs that it meets in steps, too.
#[tokio::test]
async fn a_claim_that_meets_many_expired_jobs_takes_steps() {
    let recorded = Recorded::with(steps_of(4)).await;
    let expiring = vec![NewJob::new("expires").expires_in(LONG); 20];
    recorded.queue.push(&expiring, None).await.unwrap();
    let file = raw(&recorded.folder.file());
    assert_eq!(file.execute("UPDATE jobs SET expires_at = 1", ()).unwrap(), 20);
    recorded.write_transactions();

    assert_eq!(claim(&recorded.queue, 1).await, []);

    assert_eq!(recorded.write_transactions(), 5);
    assert_eq!(recorded.queue.stats().await.unwrap().dead, 20);
}

/// R9: a recovery of few jobs takes those whose leases have ended first, so that no job
/// waits for ever while later leases end.
#[tokio::test]
async fn a_recovery_begins_with_the_leases_that_ended_first() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    push(&queue, &["later", "first"].map(named)).await;
    assert_eq!(claim(&queue, 2).await.len(), 2);
    let ends = "UPDATE jobs SET at = iif(id = 'first', 1, 2)";
    assert_eq!(raw(&folder.file()).execute(ends, ()).unwrap(), 2);

    assert_eq!(queue.recover(many(1)).await.unwrap().requeued, 1);

    let recovered = claim(&queue, 2).await;
    let recovered: Vec<_> = recovered.iter().map(|held| held.job().as_str()).collect();
    assert_eq!(recovered, ["first"], "R9: the job whose lease has ended first");
}

/// R14: a step of a claim makes no more due jobs ready than it may handle.
#[tokio::test]
async fn a_claim_beside_many_due_jobs_leaves_some_to_the_next() {
    let recorded = Recorded::with(steps_of(4)).await;
    recorded.queue.push(&vec![NewJob::new("due").delay(LONG); 20], None).await.unwrap();
    let file = raw(&recorded.folder.file());
    assert_eq!(file.execute("UPDATE jobs SET at = 1", ()).unwrap(), 20);

    assert_eq!(claim(&recorded.queue, 1).await.len(), 1);

    let stats = recorded.queue.stats().await.unwrap();
    assert_eq!((stats.leased, stats.ready, stats.scheduled), (1, 3, 16));
}

/// Pushes that wait together share transactions of 4 MiB, so that a process that waits for
/// the lock of the file gets it in between.
#[tokio::test]
async fn large_pushes_that_wait_together_take_several_transactions() {
    let recorded = Recorded::with(Environment::default()).await;
    let large = [NewJob::new(vec![b'x'; ClaimRequest::MAX_BYTES])];

    let pushes = (0..16).map(|_| recorded.queue.push(&large, None));
    let taken = recorded.transactions_of(pushes).await;

    assert!(taken >= 4, "{taken} transactions for 16 MiB");
    assert_eq!(recorded.queue.stats().await.unwrap().ready, 16);
}

/// R29: so do settlements with large results.
#[tokio::test]
async fn large_results_that_wait_together_take_several_transactions() {
    let recorded = Recorded::with(Environment::default()).await;
    let kept: Vec<_> = jobs(16).into_iter().map(|job| job.keep_result(LONG)).collect();
    recorded.queue.push(&kept, None).await.unwrap();
    let held = claim(&recorded.queue, 16).await;
    let result = vec![b'x'; MAX_RESULT].into();
    let done = settlements(&held, &Disposition::DoneWith { result });

    let calls = done.chunks(1).map(|one| recorded.queue.settle(one));
    let taken = recorded.transactions_of(calls).await;

    assert!(taken >= 4, "{taken} transactions for 16 MiB");
    assert_eq!(recorded.queue.stats().await.unwrap().finished, 16);
}
