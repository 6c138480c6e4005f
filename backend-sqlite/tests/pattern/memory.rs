//! Tests of queues that are stored in memory.

use relq_core::{Operator as _, ReliableQueue as _, ReliableQueueExt as _};
use relq_sqlite::SqliteConfig;

use crate::fixture::{ask, open};

#[tokio::test]
async fn handles_of_one_database_share_their_jobs() {
    let queue = open(SqliteConfig::memory()).await.unwrap();
    let another = queue.open_another().await.unwrap();

    another.push_one("hello".into()).await.unwrap();

    let claimed = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(&claimed.payload[..], b"hello");
}

/// Jobs in memory are kept until the last handle of their queue is dropped.
#[tokio::test]
async fn another_handle_outlives_the_first() {
    let queue = open(SqliteConfig::memory()).await.unwrap();
    queue.push_one("hello".into()).await.unwrap();
    let another = queue.open_another().await.unwrap();
    drop(queue);

    assert!(another.claim_one(&ask("w")).await.unwrap().is_some());
}

#[tokio::test]
async fn two_queues_in_memory_are_two() {
    let one = open(SqliteConfig::memory()).await.unwrap();
    let two = open(SqliteConfig::memory()).await.unwrap();

    one.push_one("hello".into()).await.unwrap();

    assert_eq!(two.stats().await.unwrap().ready, 0);
    assert_eq!(two.audit().await.unwrap().problems, [""; 0]);
}
