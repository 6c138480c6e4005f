//! Queues in memory.

use backend_sqlite::SqliteConfig;
use queue_core::{Operator as _, ReliableQueue as _, ReliableQueueExt as _};

use crate::fixture::{ask, open};

#[tokio::test]
async fn siblings_share_their_jobs() {
    let queue = open(SqliteConfig::memory()).await.unwrap();
    let sibling = queue.sibling().await.unwrap();

    sibling.push_one("hello".into()).await.unwrap();

    let claimed = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(&claimed.payload[..], b"hello");
}

/// Jobs live as long as any of the siblings does.
#[tokio::test]
async fn a_sibling_outlives_the_first_handle() {
    let queue = open(SqliteConfig::memory()).await.unwrap();
    queue.push_one("hello".into()).await.unwrap();
    let sibling = queue.sibling().await.unwrap();
    drop(queue);

    assert!(sibling.claim_one(&ask("w")).await.unwrap().is_some());
}

#[tokio::test]
async fn two_queues_in_memory_are_two() {
    let one = open(SqliteConfig::memory()).await.unwrap();
    let two = open(SqliteConfig::memory()).await.unwrap();

    one.push_one("hello".into()).await.unwrap();

    assert_eq!(two.stats().await.unwrap().ready, 0);
    assert_eq!(two.audit().await.unwrap().problems, [""; 0]);
}
