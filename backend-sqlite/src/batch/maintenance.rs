//! Maintenance of batches after pieces have ended. It happens in the same transaction,
//! so no other process can see a batch without it (B5, B10).

use relq_core::limits::MAX_JOBS_PER_CALL;

use crate::failure::Failure;
use crate::statements::Ended;
use crate::store::Store;

use super::completion;

/// Runs after a call that may have ended pieces or made them ready again: drops ready
/// pieces of cancelled batches, completes finished batches, and wakes claims, since
/// slots are free. Returns how many pieces were dropped.
pub(crate) fn after_pieces_ended(store: &Store<'_>) -> Result<u32, Failure> {
    store.wake_claims();
    let dropped = drop_waiting(store, store.page)?;
    // One call can end the last pieces of as many batches as it has jobs, and all of
    // these complete with it (B5).
    complete(store, MAX_JOBS_PER_CALL.get())?;
    Ok(dropped)
}

/// One page of the remaining maintenance, whichever call left it.
pub(crate) fn recover(store: &Store<'_>, page: u32) -> Result<(), Failure> {
    if !store.needs_maintenance()? {
        return Ok(());
    }
    drop_waiting(store, page)?;
    complete(store, page)?;
    store.remove_batches(page)
}

/// Each batch is visited once, so that a batch with a damaged count, which includes
/// pieces that do not exist, does not block the others.
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

/// Drops up to `most` waiting pieces of a batch. Returns how many.
fn drop_some(store: &Store<'_>, batch: i64, most: u32) -> Result<u32, Failure> {
    let dropped = store.drop_pieces(batch, most)?;
    for piece in &dropped {
        store.forget_body(piece.job, piece.keeps_id.then_some(&*piece.id))?;
    }
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
