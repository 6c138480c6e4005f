//! Telling other queues of completions.
//!
//! A completion that goes to another queue is noted in the outbox in the step that
//! completes the batch. It is taken out after the push, which has an id of its own: so
//! whoever forwards it, and however often, the job is there once (B5), for as long as the
//! id is known there: until five minutes after that job's end.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use relq_core::{Error, JobId, NewJob, Operation, QueueName};
use relq_redis::{Conn, PartialEffect, command, entry::Entry};

use crate::{
    lease::{Lease, Token},
    scripts::{Letter, Store},
};

/// Completions forwarded together. A call that may have made some forwards no more than
/// these behind it, because its caller waits.
const HANDFUL: u32 = 10;

/// Completions forwarded by one recovery at most.
const PAGE: u32 = 100;

/// Forwards a handful of what is in the outbox. The rest, and what cannot be forwarded
/// now, stays for `recover`.
pub(crate) async fn forward(store: &Store, operation: Operation) {
    if let Err(error) = forward_some(store, operation, HANDFUL).await {
        tracing::debug!(%error, "completions are left to the next recovery");
    }
}

/// Forwards a page of the outbox; answers whether there may be more.
pub(crate) async fn forward_page(store: &Store, page: u32) -> Result<bool, Error> {
    let page = page.min(PAGE);
    Ok(forward_some(store, Operation::Recover, page).await? == page as usize)
}

/// Forwards up to `most`, and answers how many. One that cannot be forwarded keeps no
/// other back, unless the server is out of reach.
async fn forward_some(
    store: &Store,
    operation: Operation,
    most: u32,
) -> Result<usize, Error> {
    let letters = store.read_outbox(operation, most).await?;
    let (mut partial, mut outcome) = (PartialEffect::default(), Ok(()));
    for some in letters.chunks(HANDFUL as usize) {
        let calls = some.iter().map(|letter| forward_one(store, operation, letter));
        let answers = join_all(calls).await;
        let is_cut_off = answers.iter().any(is_out_of_reach);
        for answer in answers {
            outcome = outcome.and(partial.then(answer));
        }
        if is_cut_off {
            break;
        }
    }
    outcome.map_err(|error| partial.whole(error))?;
    Ok(letters.len())
}

fn is_out_of_reach(answer: &Result<(), Error>) -> bool {
    use Error::{Interrupted, ReadOnly, Unavailable};
    matches!(answer, Err(Unavailable { .. } | ReadOnly { .. } | Interrupted { .. }))
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
    store.conn.claim_other(operation, queue.clone()).await?;
    let there = Store::new(Conn::clone(&store.conn), queue);
    there.bookkeeping.push(&[job], vec![id], None).await?;
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

/// Whether a lease, or the token of its receipt, is of a piece, so that the job's end may
/// complete a batch.
pub(crate) fn is_piece(lease: &[u8]) -> bool {
    let of_lease = || Lease::parse(&Bytes::copy_from_slice(lease)).map(|it| it.token);
    Token::parse(lease).or_else(of_lease).is_some_and(|token| token.is_piece())
}
