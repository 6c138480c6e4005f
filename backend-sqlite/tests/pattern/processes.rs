//! Several processes that use the same file.

use std::time::{Duration, Instant};

use relq_core::{Operator as _, ReliableQueue as _, ReliableQueueExt as _};

use crate::fixture::{
    Folder, LONG, Notes, ask, eventually, file_of_child, open, spawn,
};
use relq_sqlite::SqliteConfig;

/// How many jobs each process pushes and finishes.
const SHARE: u64 = 60;
const PROCESSES: u64 = 4;

#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_pushes_one_at_the_word() {
    let queue =
        open(SqliteConfig::file(file_of_child()).busy_timeout(LONG)).await.unwrap();
    Notes::of(&file_of_child(), "open").add(&[1]);
    eventually("the word", || async {
        !Notes::of(&file_of_child(), "word").read().is_empty()
    })
    .await;
    queue.push_one("hello".into()).await.unwrap();
}

/// A waiting claim finds a push of another process within its poll interval, plus some
/// time for a busy machine.
#[tokio::test]
async fn a_push_of_another_process_wakes_a_waiting_claim() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let _child = spawn("processes::child_pushes_one_at_the_word", &folder.file());
    let opened = Notes::of(&folder.file(), "open");
    eventually("the child opens the file", || async { !opened.read().is_empty() })
        .await;

    let began = Instant::now();
    Notes::of(&folder.file(), "word").add(&[1]);
    let claimed = queue.claim_one(&ask("w").wait(LONG)).await.unwrap();

    assert!(claimed.is_some());
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_pushes_and_works_its_share() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    let worked = Notes::of(&file, "worked");
    for number in 0..SHARE {
        queue
            .push_one(format!("{}{number:09}", std::process::id()).into())
            .await
            .unwrap();
        let asked = ask(&format!("w{}", std::process::id())).wait(LONG);
        let claimed = queue.claim_one(&asked).await.unwrap().unwrap();
        queue.ack(&claimed.receipt).await.unwrap();
        worked.add(&[String::from_utf8_lossy(&claimed.payload).parse().unwrap()]);
    }
}

/// Processes create the file at the same moment, push and work: each job is delivered
/// once, and no call fails.
#[tokio::test]
async fn processes_share_a_file_from_its_first_moment() {
    let folder = Folder::new();
    let children: Vec<_> = (0..PROCESSES)
        .map(|_| spawn("processes::child_pushes_and_works_its_share", &folder.file()))
        .collect();

    let worked = Notes::of(&folder.file(), "worked");
    let total = usize::try_from(SHARE * PROCESSES).unwrap();
    eventually("all is worked", || async { worked.read().len() == total }).await;
    drop(children);

    let mut numbers = worked.read();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), total, "none ran twice");
    let queue = folder.queue().await;
    assert_eq!(queue.stats().await.unwrap().finished, SHARE * PROCESSES);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// A second handle must not open and close the file except through SQLite. If it did,
/// this process would lose all its locks on the file. Another process could then treat
/// the log as unused, and remove it while others use it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn opening_a_second_handle_keeps_the_locks_of_the_first() {
    let folder = Folder::new();
    let first = folder.queue().await;
    assert!(is_locked(&folder.file()).await, "against the removal of its log");

    let second = folder.queue().await;
    drop(second.open_another().await.unwrap());

    assert!(is_locked(&folder.file()).await, "still");
    first.push_one("hello".into()).await.unwrap();
}

/// Proves that the test above can fail: if a process opens and closes the file without
/// SQLite, its lock on the file is gone.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn closing_the_file_by_oneself_loses_the_locks() {
    let folder = Folder::new();
    let _queue = folder.queue().await;
    assert!(is_locked(&folder.file()).await);

    drop(std::fs::File::open(folder.file()).unwrap());

    assert!(!is_locked(&folder.file()).await);
}

/// How many times in a row the kernel's list must show no lock, before the test treats
/// the file as unlocked. The list may leave out a lock while other processes lock and
/// unlock their files.
#[cfg(target_os = "linux")]
const LOOKS: usize = 100;

/// Whether any process holds a lock on a file.
#[cfg(target_os = "linux")]
async fn is_locked(file: &std::path::Path) -> bool {
    for _ in 0..LOOKS {
        if locks_on(file) > 0 {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    false
}

/// Counts the locks on a file in `/proc/locks`, the kernel's list.
#[cfg(target_os = "linux")]
fn locks_on(file: &std::path::Path) -> usize {
    use std::os::unix::fs::MetadataExt as _;
    let inode = format!(":{}", std::fs::metadata(file).unwrap().ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap();
    let is_on_file = |line: &str| {
        line.split_whitespace().nth(5).is_some_and(|place| place.ends_with(&inode))
    };
    locks.lines().filter(|line| is_on_file(line)).count()
}
