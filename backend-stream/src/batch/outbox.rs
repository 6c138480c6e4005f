//! Pushes completion jobs to other queues.
//!
//! A completion job for another queue is stored in the outbox in the step that
//! completes the batch. It is removed after the push. Its id is fixed, so however often
//! workers push it, the queue stores it once (B5). That holds as long as the other
//! queue remembers the id: until five minutes after the job's end.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use relq_core::{Error, JobId, NewJob, QueueName, error::Operation};
use relq_redis::{PartialEffect, command, entry::Entry};

use crate::{
    lease::{Lease, Token},
    scripts::{Letter, Store},
};

/// How many completion jobs are pushed to other queues at the same time. A call that
/// may complete a batch pushes at most this many afterwards, because its caller waits.
const HANDFUL: u32 = 10;

/// How many completion jobs one recovery pushes to other queues at most.
const PAGE: u32 = 100;

/// Pushes a few completion jobs of the outbox to their queues. The next recovery pushes
/// the others, and those that fail now.
pub(crate) async fn forward(store: &Store, operation: Operation) {
    if let Err(error) = forward_some(store, operation, HANDFUL).await {
        tracing::debug!(%error, "completions are left to the next recovery");
    }
}

/// Pushes one page of completion jobs to their queues. Returns whether more are left
/// that can be pushed now.
pub(crate) async fn forward_page(store: &Store, page: u32) -> Result<bool, Error> {
    forward_some(store, Operation::Recover, page.min(PAGE)).await
}

/// Pushes up to `most` completion jobs to their queues. Returns whether more are left
/// that can be pushed now. A job that its queue refuses stays in the outbox, and the
/// jobs after it are still pushed. If the server cannot be reached, the call fails.
async fn forward_some(
    store: &Store,
    operation: Operation,
    most: u32,
) -> Result<bool, Error> {
    let (letters, count) = store.read_outbox(operation, most).await?;
    let (mut partial, mut forwarded) = (PartialEffect::default(), 0);
    for some in letters.chunks(HANDFUL as usize) {
        let calls = some.iter().map(|letter| forward_one(store, operation, letter));
        let mut outcome = Ok(());
        for (letter, answer) in some.iter().zip(join_all(calls).await) {
            partial.add(&answer);
            match answer {
                Ok(()) => forwarded += 1,
                Err(error) if is_out_of_reach(&error) => outcome = Err(error),
                Err(error) => stays(letter, &error),
            }
        }
        outcome.map_err(|error| partial.whole(error))?;
    }
    Ok(forwarded > 0 && count > letters.len() as u64)
}

/// Logs that a completion job stays in the outbox. The next recovery tries it again.
fn stays(letter: &Letter, error: &Error) {
    let batch = String::from_utf8_lossy(&letter.batch);
    let error = error.full_message();
    let queue = &letter.queue;
    tracing::warn!(%batch, queue, error, "a completion cannot be forwarded");
}

fn is_out_of_reach(error: &Error) -> bool {
    use Error::{Interrupted, ReadOnly, Unavailable};
    matches!(error, Unavailable { .. } | ReadOnly { .. } | Interrupted { .. })
}

async fn forward_one(
    store: &Store,
    operation: Operation,
    letter: &Letter,
) -> Result<(), Error> {
    let Some((queue, id, job)) = read(letter) else {
        let source = format!("the completion of batch {:?} is damaged", letter.batch);
        return Err(Error::Unreadable {
            at: store.conn.at(operation),
            source: source.into(),
        });
    };
    let conn = store.conn.for_queue(operation, queue.clone()).await?;
    let there = Store::new(conn, queue);
    let now = there.conn.server_time();
    there.bookkeeping.push(&[job], vec![id], None, now).await?;
    let mut cmd = command("SREM");
    cmd.arg(store.keys.outbox()).arg(&letter.batch[..]);
    store.conn.call(operation, &cmd).await.map(drop)
}

fn read(letter: &Letter) -> Option<(QueueName, JobId, NewJob)> {
    let queue = QueueName::new(&letter.queue).ok()?;
    let entry = Entry::decode(&letter.entry).ok()?;
    let mut job = NewJob::new(entry.payload)
        .id(entry.id.clone())
        .priority(entry.priority)
        .max_attempts(entry.max_attempts)
        .delay(Duration::from_millis(letter.delay_ms));
    job.headers = entry.headers;
    job.lease = entry.lease;
    job.keep_result = entry.keep_result;
    if letter.expires_ms > 0 {
        job.expires_in = Some(Duration::from_millis(letter.expires_ms));
    }
    Some((queue, entry.id, job))
}

/// Whether a lease, or the token of a receipt, is that of a piece of a batch. Such a
/// piece can be the last of its batch, so a call that ends it may complete the batch.
pub(crate) fn is_piece(lease: &[u8]) -> bool {
    let of_lease = || Lease::parse(&Bytes::copy_from_slice(lease)).map(|it| it.token);
    Token::parse(lease).or_else(of_lease).is_some_and(|token| token.is_piece())
}
