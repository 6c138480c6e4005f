//! Emptying the queue, and nothing but the queue.
//!
//! FLUSHDB would take the keys of others with it. In a database of up to ten thousand
//! keys all goes in one step; a larger one is emptied page by page, and what is pushed
//! meanwhile may stay.

use bytes::Bytes;
use relq_core::Error;
use relq_redis::PartialEffect;

use crate::scripts::Store;

/// Removes every job; answers how many.
pub(crate) async fn purge(store: &Store) -> Result<u64, Error> {
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
