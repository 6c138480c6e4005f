//! Tests that kill processes while they push and claim. They send SIGKILL on systems
//! that have signals.

use std::{collections::HashSet, time::Duration};

use relq_core::{
    ClaimRequest, Disposition, NewJob, Operator as _, ReliableQueue as _,
    ReliableQueueExt as _, Settlement, WorkerId, outcome::Settled,
};
use relq_sqlite::SqliteConfig;

use crate::fixture::{
    Folder, LONG, Notes, eventually, file_of_child, many, open, spawn,
};

const KILLS: u64 = 12;
const BATCH: u64 = 20;
const LEASE: Duration = Duration::from_secs(1);

fn number(payload: &[u8]) -> u64 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

/// Repeats a push of several jobs, and records the jobs of each push that returned Ok.
#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_pushes_until_killed() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    let pushed = Notes::of(&file, "pushed");
    for batch in 0.. {
        let first = u64::from(std::process::id()) * 10_000_000 + batch * BATCH;
        let numbers: Vec<u64> = (first..first + BATCH).collect();
        let jobs: Vec<NewJob> =
            numbers.iter().map(|number| NewJob::new(number.to_string())).collect();
        queue.push_all(&jobs).await.unwrap();
        pushed.add(&numbers);
    }
}

/// Claims and acknowledges jobs, and records those whose ack was applied.
#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_works_until_killed() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    let (delivered, finished) =
        (Notes::of(&file, "delivered"), Notes::of(&file, "finished"));
    let worker = WorkerId::new(format!("w{}", std::process::id())).unwrap();
    let ask = ClaimRequest::new(worker, LEASE).max(many(8)).wait(LEASE);
    loop {
        for claimed in queue.claim(&ask).await.unwrap() {
            delivered.add(&[number(&claimed.payload)]);
            if queue.ack(&claimed.receipt).await.unwrap() == Settled::Applied {
                finished.add(&[number(&claimed.payload)]);
            }
        }
    }
}

/// R1, R8, R9: at whatever moment the processes are killed, each pushed job is finished
/// or still stored, and no finished job is delivered again.
#[tokio::test]
async fn killed_processes_lose_nothing_and_bring_nothing_back() {
    let folder = Folder::new();
    let notes = |name| Notes::of(&folder.file(), name);
    let (pushed, delivered, finished) =
        (notes("pushed"), notes("delivered"), notes("finished"));
    for round in 1..=KILLS {
        let mut producer = spawn("killed::child_pushes_until_killed", &folder.file());
        let mut worker = spawn("killed::child_works_until_killed", &folder.file());
        let (enough_pushed, enough_done) =
            (pushed.read().len() + 40, finished.read().len() + 10);
        eventually("both are in the middle of their work", || async {
            pushed.read().len() >= enough_pushed && finished.read().len() >= enough_done
        })
        .await;
        tokio::time::sleep(Duration::from_micros(round * 700)).await;
        producer.kill();
        worker.kill();
    }

    let queue = folder.queue().await;
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
    let drained = drain(&queue).await;

    let finished: HashSet<u64> = finished.read().into_iter().collect();
    let twice: Vec<_> = finished.intersection(&drained).collect();
    assert!(twice.is_empty(), "came back after they were finished: {twice:?}");
    let missing: Vec<u64> = pushed
        .read()
        .into_iter()
        .filter(|number| !finished.contains(number) && !drained.contains(number))
        .collect();
    // A worker may be killed between its ack and the record of it. So the queue may
    // have counted one more finished job per kill than the records show.
    let counted = queue.stats().await.unwrap().finished;
    let unnoted = counted - u64::try_from(finished.len() + drained.len()).unwrap();
    assert!(unnoted <= KILLS, "{unnoted}");
    assert!(u64::try_from(missing.len()).unwrap() <= unnoted, "lost: {missing:?}");
    let delivered: HashSet<u64> = delivered.read().into_iter().collect();
    assert!(missing.iter().all(|number| delivered.contains(number)), "{missing:?}");
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// Claims and acknowledges all remaining jobs, and waits for the leases of killed
/// workers to expire.
async fn drain(queue: &relq_sqlite::SqliteQueue) -> HashSet<u64> {
    let worker = WorkerId::new("survivor").unwrap();
    let ask = ClaimRequest::new(worker, LEASE).max(many(500));
    let drained = tokio::sync::Mutex::new(HashSet::new());
    eventually("all is worked", || async {
        queue.recover(many(1000)).await.unwrap();
        let claimed = queue.claim(&ask).await.unwrap();
        // One commit for all of them: the killed producers may have pushed more jobs
        // than the disk syncs one by one within the limit.
        let acks: Vec<_> = claimed
            .iter()
            .map(|job| Settlement::new(job.receipt.clone(), Disposition::Done))
            .collect();
        let settled = queue.settle(&acks).await.unwrap();
        assert!(
            settled.iter().all(|settled| *settled == Settled::Applied),
            "{settled:?}"
        );
        drained.lock().await.extend(claimed.iter().map(|job| number(&job.payload)));
        queue.stats().await.unwrap().unfinished() == 0
    })
    .await;
    drained.into_inner()
}
