//! Maintenance of batches after some of their pieces have ended. It runs in the
//! transaction that ended the pieces, so no other process sees a batch that still needs
//! it (B5, B10).

use relq_core::limits::MAX_JOBS_PER_CALL;

use crate::failure::Failure;
use crate::followers::Moved;
use crate::statements::{End, Ended};
use crate::store::Store;

use super::completion;

/// Runs after a call that may have ended pieces or made them ready again. It drops
/// ready pieces of cancelled batches and completes finished batches. It also wakes
/// waiting claims, because ended pieces free slots. Returns how many pieces it dropped.
pub(crate) fn after_pieces_ended(store: &Store<'_>) -> Result<u32, Failure> {
    store.wake_claims();
    let dropped = drop_waiting(store, store.page)?;
    // One call can end the last pieces of as many batches as it has jobs. All of those
    // batches must complete in the same transaction (B5).
    complete(store, MAX_JOBS_PER_CALL.get())?;
    Ok(dropped)
}

/// Does one page of the maintenance that earlier calls have left undone.
pub(crate) fn recover(store: &Store<'_>, page: u32) -> Result<(), Failure> {
    if !store.needs_maintenance()? {
        return Ok(());
    }
    drop_waiting(store, page)?;
    complete(store, page)?;
    store.remove_batches(page)
}

/// Drops up to `most` waiting pieces of cancelled batches. It visits each batch only
/// once. A damaged batch may count pieces that do not exist, and must not block the
/// batches after it.
fn drop_waiting(store: &Store<'_>, most: u32) -> Result<u32, Failure> {
    let (mut room, mut last) = (most, None);
    while room > 0
        && let Some(batch) = store.batch_to_empty(last)?
    {
        room = room.saturating_sub(drop_some(store, batch, room)?);
        last = Some(batch);
    }
    Ok(most - room)
}

/// Drops up to `most` waiting pieces of one batch. Returns how many it dropped.
fn drop_some(store: &Store<'_>, batch: i64, most: u32) -> Result<u32, Failure> {
    let dropped = store.drop_pieces(batch, most)?;
    let mut moved = Moved::default();
    for piece in &dropped {
        let end = End::Cancelled { leader: None };
        store.remove_bodies(&[piece.job])?;
        moved.add(store.remember(&piece.remembered, end)?);
    }
    moved.cancel_orphans(store)?;
    let count = u32::try_from(dropped.len()).unwrap_or(u32::MAX);
    store.count_ended(Ended { cancelled: count, ..Ended::default() })?;
    Ok(count)
}

fn complete(store: &Store<'_>, most: u32) -> Result<(), Failure> {
    for ended in store.batches_to_complete(most)? {
        store.complete_batch(ended.batch)?;
        if let Some(row) = store.take_completion(ended.batch)? {
            completion::push(store, &ended, row)?;
        }
        store.wake_claims();
    }
    Ok(())
}
