//! The batches of a queue, and a batch that must exist.

use relq::{
    Queue,
    batch::{BatchId, BatchQueue, BatchStatus},
};

use crate::failure::{CommandResult, Failure};

/// The batch calls of a queue; fails if the backend has no batches.
pub(crate) fn batches_of(queue: &dyn Queue) -> CommandResult<&dyn BatchQueue> {
    let backend = queue.capabilities().backend;
    queue.batch_queue().ok_or_else(|| {
        Failure::Usage(format!(
            "the backend {backend} has no batches: choose another --url"
        ))
    })
}

/// The status of a batch that must exist.
pub(super) fn known(
    id: &BatchId,
    status: Option<BatchStatus>,
) -> CommandResult<BatchStatus> {
    status.ok_or_else(|| Failure::Failed(format!("there is no batch {id}")))
}
