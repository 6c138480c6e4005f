//! Finds the batch calls of a queue, and the status of a batch that must exist.

use relq::{
    Queue,
    batch::{BatchId, BatchQueue, BatchStatus},
};

use crate::failure::{CommandResult, Failure};

/// The batch calls of a queue. Fails if its backend has no batches.
pub(crate) fn batches_of(queue: &dyn Queue) -> CommandResult<&dyn BatchQueue> {
    let backend = queue.capabilities().backend;
    queue.batch_queue().ok_or_else(|| {
        Failure::Usage(format!(
            "the backend {backend} has no batches: choose another --url"
        ))
    })
}

/// Returns a batch's status if it is found, or the error that no batch has this id.
pub(super) fn known(
    id: &BatchId,
    status: Option<BatchStatus>,
) -> CommandResult<BatchStatus> {
    status.ok_or_else(|| Failure::Failed(format!("there is no batch {id}")))
}
