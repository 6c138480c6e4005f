//! Removes all jobs of the queue, and only keys of the queue.
//!
//! FLUSHDB would also remove foreign keys. A database of up to a thousand keys is
//! purged in one step. A larger one is purged page by page, and jobs that are pushed
//! meanwhile may stay, with their ids, unique keys and tokens. If such a purge is
//! interrupted, the rest of the queue is unchanged.

use relq_core::{Error, error::Operation};
use relq_redis::{PartialEffect, all_steps};

use crate::scripts::{PurgePage, Store};

/// Removes every job of the queue. Returns how many were removed.
pub(crate) async fn purge(store: &Store) -> Result<u64, Error> {
    all_steps(Operation::Purge, purge_all(store)).await
}

async fn purge_all(store: &Store) -> Result<u64, Error> {
    let (mut removed, mut partial) = (0, PartialEffect::default());
    let mut page = PurgePage::FIRST;
    loop {
        let (jobs, next) = partial.then(store.purge(&page).await)?;
        removed += jobs;
        if next.is_end() {
            return Ok(removed);
        }
        page = next;
    }
}
