//! Telling other queues of completions.
//!
//! A completion that goes to another queue is noted in the outbox in the step that
//! completes the batch. It is taken out after the push, which has an id of its own: so
//! whoever forwards it, and however often, the job is there once (B5).

use std::time::Duration;

use queue_core::{Error, JobId, NewJob, Operation, QueueName};
use queue_redis::{Conn, command, entry::Entry};

use crate::{
    keys::Stream,
    lease::Token,
    scripts::{Letter, Store},
};

/// Completions forwarded by one call.
const PAGE: u32 = 100;

/// Forwards what is in the outbox. What cannot be forwarded now stays for `recover`.
pub(crate) async fn forward(store: &Store, operation: Operation) {
    if let Err(error) = forward_page(store, operation).await {
        tracing::debug!(%error, "completions are left to the next recovery");
    }
}

/// Forwards a page of the outbox. One that cannot be forwarded keeps no other back.
pub(crate) async fn forward_page(
    store: &Store,
    operation: Operation,
) -> Result<(), Error> {
    let mut outcome = Ok(());
    for letter in store.read_outbox(operation, PAGE).await? {
        outcome = outcome.and(forward_one(store, operation, &letter).await);
    }
    outcome
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
    let there = Store::new(Conn::clone(&store.conn), queue);
    there.shelf.push(&[job], vec![id], None).await?;
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
    if letter.expires_ms > 0 {
        job.expires_in = Some(Duration::from_millis(letter.expires_ms));
    }
    Some((queue, entry.id, job))
}

/// Whether the receipt is of a piece, so that its end may complete a batch.
pub(crate) fn is_piece(token: &[u8]) -> bool {
    Token::parse(token).is_some_and(|token| matches!(token.stream, Stream::Pieces(_)))
}
