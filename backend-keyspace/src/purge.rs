//! Removes all jobs of the queue, and only keys of the queue.
//!
//! FLUSHDB would also remove foreign keys. A database of up to a thousand keys is
//! purged in one step. A larger one is purged page by page, and jobs that are pushed
//! meanwhile may stay, with their ids and unique keys. If such a purge is interrupted, the
//! rest of the queue is unchanged.

use bytes::Bytes;
use relq_core::{Error, error::Operation};
use relq_redis::{PartialEffect, all_steps};

use crate::scripts::Store;

/// Removes every job of the queue. Returns how many were removed.
pub(crate) async fn purge(store: &Store) -> Result<u64, Error> {
    all_steps(Operation::Purge, purge_all(store)).await
}

async fn purge_all(store: &Store) -> Result<u64, Error> {
    let (mut removed, mut partial) = (0, PartialEffect::default());
    let mut cursor = Bytes::from_static(b"0");
    loop {
        let (jobs, next) = partial.then(store.purge(&cursor).await)?;
        removed += jobs;
        if &next[..] == b"0" {
            return Ok(removed);
        }
        cursor = next;
    }
}
