//! The completion job of a batch. It is stored when the batch is created, and is pushed
//! in the transaction that completes the batch (B5).

use std::{
    cell::{Cell, RefCell},
    num::NonZeroU16,
    time::Duration,
};

use relq_core::{
    JobId, NewJob, Priority, QueueName,
    batch::{BatchId, OnComplete},
    environment::Timestamp,
    outcome::Pushed,
};

use crate::call::Call as _;
use crate::failure::Failure;
use crate::headers;
use crate::push::Push;
use crate::statements::{CompletionRow, EndedBatch, queue_key};
use crate::store::Store;

/// Encodes the completion job of a batch as a row of the table `completions`.
pub(super) fn row(on_complete: &OnComplete) -> CompletionRow {
    let job = &on_complete.job;
    CompletionRow {
        queue_name: on_complete.queue.as_ref().map(QueueName::to_string),
        payload: job.payload.to_vec(),
        headers: headers::encode(&job.headers),
        priority: job.priority.level(),
        delay_ms: whole_ms(job.delay),
        expires_ms: job.expires_in.map(whole_ms),
        max_attempts: job.max_attempts.get(),
        lease_ms: job.lease.map(whole_ms),
        keep_ms: job.keep_result.map(whole_ms),
    }
}

/// Pushes the completion job of a batch to its queue, in this transaction.
pub(super) fn push(
    store: &Store<'_>,
    ended: &EndedBatch,
    row: CompletionRow,
) -> Result<(), Failure> {
    let batch = BatchId::new(&ended.id).map_err(|it| damaged(&it.to_string()))?;
    let other = row.queue_name.as_ref().map(QueueName::new).transpose();
    let other = other.map_err(|it| damaged(&it.to_string()))?;
    let queue = match &other {
        None => store.queue,
        Some(name) => queue_key(store.conn, store.steps, name)?,
    };
    let is_own = queue == store.queue;
    let id = if is_own {
        batch.completion_job(created_at(ended))
    } else {
        id_elsewhere(store, ended, &batch)?
    };
    let push = Push { jobs: vec![job(row)?.id(id)], token: None };
    let pushed =
        if is_own { push.run(store) } else { push.run(&of_queue(store, queue)) };
    let pushed = pushed?;
    if let Some(other) = other {
        store.wake_claims_of(other);
    }
    for pushed in pushed {
        if let Pushed::Duplicate { existing, .. } = pushed {
            tracing::warn!(%batch, job = %existing, "another job has the id of the completion job");
        }
    }
    Ok(())
}

/// The same transaction on another queue. A queue has one reservation of turns in a
/// transaction: with a second one on the batch's own queue, its completion job would be behind
/// jobs that become ready after it.
fn of_queue<'a>(store: &Store<'a>, queue: i64) -> Store<'a> {
    Store {
        queue,
        calls: 1,
        turns: RefCell::default(),
        dropped: Cell::default(),
        ..*store
    }
}

fn created_at(ended: &EndedBatch) -> Timestamp {
    Timestamp::from_unix_ms(ended.created_at)
}

/// The id of the completion job in a queue that is not the batch's own.
fn id_elsewhere(
    store: &Store<'_>,
    ended: &EndedBatch,
    batch: &BatchId,
) -> Result<JobId, Failure> {
    let own = QueueName::new(store.queue_name()?);
    let own = own.map_err(|it| damaged(&it.to_string()))?;
    Ok(batch.completion_job_elsewhere(created_at(ended), &own))
}

/// Decodes a row of the table `completions` into the job to push.
fn job(row: CompletionRow) -> Result<NewJob, Failure> {
    let headers = headers::decode(row.headers.as_deref());
    let mut job = NewJob::new(row.payload);
    job.headers = headers.ok_or_else(|| damaged("its headers"))?;
    job.priority =
        Priority::new(row.priority).ok_or_else(|| damaged("its priority"))?;
    job.delay = Duration::from_millis(row.delay_ms);
    job.expires_in = row.expires_ms.map(Duration::from_millis);
    let attempts = NonZeroU16::new(row.max_attempts);
    job.max_attempts = attempts.ok_or_else(|| damaged("its attempts"))?;
    job.lease = row.lease_ms.map(Duration::from_millis);
    job.keep_result = row.keep_ms.map(Duration::from_millis);
    Ok(job)
}

/// Converts a duration to milliseconds. It rounds up, so that no job becomes due or
/// expires too early (R14).
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn damaged(what: &str) -> Failure {
    Failure::unusable(format!("a completion job is damaged: {what}; run an audit"))
}
