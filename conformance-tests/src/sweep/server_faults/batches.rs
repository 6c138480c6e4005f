//! Batches for the tests of server faults.

use std::num::NonZeroU32;

use relq_core::{
    NewJob, Queue, QueueName,
    batch::{BatchId, BatchQueue, BatchStatus, NewBatch, OnComplete},
};

/// The name of the queue to which batches push their completion jobs.
pub(super) fn elsewhere() -> QueueName {
    QueueName::new("elsewhere").expect("a valid name")
}

/// A batch of which at most `limit` pieces are leased at once. When it completes, it
/// pushes a job to the other queue. The payload of that job is the batch's name.
pub(super) fn telling(id: &str, limit: u32) -> NewBatch {
    let job = NewJob::new(id.to_owned());
    NewBatch::new(named(id))
        .limit(NonZeroU32::new(limit))
        .on_complete(OnComplete::new(job).queue(elsewhere()))
}

pub(super) fn named(id: &str) -> BatchId {
    BatchId::new(id).expect("a valid id")
}

pub(super) fn plain(pieces: &[&'static str]) -> Vec<NewJob> {
    pieces.iter().copied().map(NewJob::new).collect()
}

/// The batch calls of a queue. Panics if the backend does not support batches.
pub(super) fn batches(queue: &dyn Queue) -> &dyn BatchQueue {
    queue.batch_queue().expect("the backend supports batches")
}

/// Creates a batch of these pieces and seals it.
pub(super) async fn submit(queue: &dyn Queue, new: &NewBatch, pieces: &[&'static str]) {
    batches(queue).create(new).await.expect("made");
    batches(queue).add(&new.id, &plain(pieces), None).await.expect("added");
    batches(queue).seal(&new.id).await.expect("sealed");
}

/// The status of a batch, which must exist.
pub(super) async fn status(queue: &dyn Queue, id: &str) -> BatchStatus {
    let status = batches(queue).batch(&named(id)).await.expect("answered");
    status.expect("the batch is there")
}
