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
/// ready pieces of cancelled batches, at most a page in each transaction, and completes
/// finished batches. It also wakes waiting claims, because ended pieces free slots.
pub(crate) fn after_pieces_ended(store: &Store<'_>) -> Result<(), Failure> {
    let room = store.page - store.dropped.get();
    drop_and_complete(store, room).map(drop)
}

/// The same after a batch was cancelled: drops a page of its pieces, whatever other calls of
/// the transaction have dropped. Returns how many pieces it dropped.
pub(crate) fn after_cancel(store: &Store<'_>) -> Result<u32, Failure> {
    drop_and_complete(store, store.page)
}

fn drop_and_complete(store: &Store<'_>, room: u32) -> Result<u32, Failure> {
    store.wake_claims();
    let dropped = drop_waiting(store, room)?;
    store.dropped.set(store.page.min(store.dropped.get() + dropped));
    // One call can end the last pieces of as many batches as it has jobs. All of those
    // batches must complete in the same transaction (B5).
    complete(store, MAX_JOBS_PER_CALL.get())?;
    Ok(dropped)
}

/// Does one page of the maintenance that earlier calls have left undone. Returns whether
/// there is more. A damaged batch always looks as if there were: it counts pieces that do
/// not exist. So there is no more if this call found nothing to do.
pub(crate) fn recover(store: &Store<'_>, page: u32) -> Result<bool, Failure> {
    if !store.needs_maintenance()? {
        return Ok(false);
    }
    let dropped = drop_waiting(store, page)?;
    // Completes every batch whose last piece ended in this step, whether this function
    // dropped the piece or the recovery buried it before (B5).
    let completed = complete(store, MAX_JOBS_PER_CALL.get())?;
    let removed = store.remove_batches(page)?;
    let has_worked = dropped > 0 || completed > 0 || removed > 0;
    Ok(has_worked && store.needs_maintenance()?)
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

/// Completes up to `most` batches. Returns how many.
fn complete(store: &Store<'_>, most: u32) -> Result<usize, Failure> {
    let ended = store.batches_to_complete(most)?;
    let count = ended.len();
    for ended in ended {
        store.complete_batch(ended.batch)?;
        if let Some(row) = store.take_completion(ended.batch)? {
            completion::push(store, &ended, row)?;
        }
        store.wake_claims();
    }
    Ok(count)
}
