//! Many tasks call one handle at once. Their calls share transactions, but do not
//! affect each other.

use std::{collections::HashSet, sync::Arc, time::Duration};

use relq_core::{
    Error, NewJob, Operator as _, PushToken, ReliableQueue as _, ReliableQueueExt as _,
    outcome::Settled,
};

use crate::fixture::{Folder, LONG, ask, eventually, many, open, raw};

/// R6: if a hundred tasks try to claim one job at once, only one of them gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_share_a_transaction_stay_apart() {
    let folder = Folder::new();
    let queue = Arc::new(folder.queue().await);
    let work = |index: usize| {
        let queue = Arc::clone(&queue);
        async move {
            queue.push_one(NewJob::new(format!("{index}"))).await.unwrap();
            let claimed = queue.claim_one(&ask("w")).await.unwrap().unwrap();
            assert_eq!(queue.ack(&claimed.receipt).await.unwrap(), Settled::Applied);
            claimed.payload
        }
    };

    let tasks: Vec<_> = (0..100).map(|index| tokio::spawn(work(index))).collect();
    let mut seen = HashSet::new();
    for task in tasks {
        assert!(seen.insert(task.await.unwrap()), "delivered twice");
    }

    assert_eq!(seen.len(), 100);
    assert_eq!(queue.stats().await.unwrap().finished, 100);
}

/// R5: a call that fails inside a shared transaction does not fail the other calls.
#[tokio::test]
async fn a_refused_call_fails_no_other() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(LONG)).await.unwrap();
    let token = PushToken::new("call").unwrap();
    queue.push(&["one".into()], Some(&token)).await.unwrap();
    let gate = raw(&folder.file());
    gate.execute_batch("BEGIN IMMEDIATE").unwrap();

    // While another connection locks the file, the first call waits, and the other
    // calls queue behind it: so they share a transaction.
    let two: [NewJob; 2] = ["two".into(), "three".into()];
    let open_proxy = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        gate.execute_batch("COMMIT").unwrap();
    };
    let (first, before, refused, after, ()) = tokio::join!(
        queue.push_one("first".into()),
        queue.push_one("before".into()),
        queue.push(&two, Some(&token)),
        queue.push_one("after".into()),
        open_proxy,
    );

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    first.and(before).and(after).unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 4);
}

/// R22: if the caller of a claim was dropped, the jobs that were leased for it are
/// given back at once.
#[tokio::test]
async fn a_dropped_claim_strands_nothing() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(LONG)).await.unwrap();
    queue.push_one("hello".into()).await.unwrap();
    let gate = raw(&folder.file());
    gate.execute_batch("BEGIN IMMEDIATE").unwrap();

    let patience = Duration::from_millis(50);
    tokio::time::timeout(patience, queue.claim(&ask("w"))).await.unwrap_err();
    gate.execute_batch("COMMIT").unwrap();

    eventually("the job is ready again", || async {
        let stats = queue.stats().await.unwrap();
        stats.ready == 1 && stats.leased == 0
    })
    .await;
    let claimed = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(claimed.attempt(), 1);
}

/// A call that is dropped at any moment happens completely or not at all, and the file
/// stays intact.
#[tokio::test]
async fn dropped_calls_leave_the_file_whole() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for micros in 0..100 {
        let patience = Duration::from_micros(micros * 10);
        let push = queue.push_one("hello".into());
        if let Ok(pushed) = tokio::time::timeout(patience, push).await {
            pushed.unwrap();
        }
        let three = ask("w").max(many(3));
        let claim = queue.claim(&three);
        if let Ok(claimed) = tokio::time::timeout(patience, claim).await {
            claimed.unwrap();
        }
    }

    queue.release_worker(&ask("w").worker).await.unwrap();

    eventually("nothing is leased", || async {
        queue.release_worker(&ask("w").worker).await.unwrap();
        queue.stats().await.unwrap().leased == 0
    })
    .await;
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// When the handle is dropped, its database thread ends and closes the file. The last
/// close copies the log into the file and removes the log.
#[tokio::test]
async fn a_dropped_handle_closes_its_file() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("hello".into()).await.unwrap();
    assert!(folder.file().with_extension("db-wal").exists());

    folder.close(queue).await;
}

/// The queue works on a tokio runtime in which neither timers nor I/O are enabled.
#[test]
fn a_bare_runtime_is_enough() {
    let folder = Folder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();

    let claimed = runtime.block_on(async {
        let queue = folder.queue().await;
        queue.push_one("hello".into()).await.unwrap();
        queue.claim_one(&ask("w").wait(LONG)).await.unwrap()
    });

    assert!(claimed.is_some());
}
