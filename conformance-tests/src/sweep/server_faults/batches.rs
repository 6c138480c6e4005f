//! Batches for these tests.

use std::num::NonZeroU32;

use relq_core::{
    NewJob, Queue, QueueName,
    batch::{BatchId, BatchQueue, BatchStatus, NewBatch, OnComplete},
};

/// The queue to which completions are sent.
pub(super) fn elsewhere() -> QueueName {
    QueueName::new("elsewhere").expect("a valid name")
}

/// A batch with at most `limit` leased pieces at once. Its completion is a job in the
/// other queue, whose payload is the batch's name.
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

/// Returns the batches of a backend that supports them.
pub(super) fn batches(queue: &dyn Queue) -> &dyn BatchQueue {
    queue.batch_queue().expect("the backend supports batches")
}

/// Creates a batch of these pieces and seals it.
pub(super) async fn submit(queue: &dyn Queue, new: &NewBatch, pieces: &[&'static str]) {
    batches(queue).create(new).await.expect("made");
    batches(queue).add(&new.id, &plain(pieces), None).await.expect("added");
    batches(queue).seal(&new.id).await.expect("sealed");
}

/// Returns the status of a batch that exists.
pub(super) async fn status(queue: &dyn Queue, id: &str) -> BatchStatus {
    let status = batches(queue).batch(&named(id)).await.expect("answered");
    status.expect("the batch is there")
}
