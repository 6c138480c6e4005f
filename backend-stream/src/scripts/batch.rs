//! The functions that call the scripts for batches.

use bytes::Bytes;
use relq_core::{
    Error, JobId, NewJob, PushToken, QueueName,
    batch::{Added, BatchId, BatchStatus, Change, Created, NewBatch},
    environment::Timestamp,
    error::Operation,
    outcome::{DuplicateOf, Pushed, Recovered},
};
use relq_redis::{
    Call, Reply,
    bookkeeping::{Bookkeeping, token_of_another_call},
    entry,
    entry::millis,
};

use super::{BATCH_SCRIPTS, Store};
use crate::batch::record;

/// A completion job that must be pushed to another queue.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) batch: Bytes,
    pub(crate) queue: String,
    pub(crate) entry: Bytes,
    pub(crate) delay_ms: u64,
    /// How long (ms) after its push the job expires; 0 if it does not expire.
    pub(crate) expires_ms: u64,
}

/// The status of a batch, and the last completion of any batch of the queue.
#[derive(Debug)]
pub(crate) struct BatchSnapshot {
    pub(crate) status: Option<BatchStatus>,
    /// The id of the entry in the stream `told` that reports the last completion.
    pub(crate) last_told: String,
}

impl BatchSnapshot {
    pub(crate) fn of(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.list()?.into_iter();
        let last_told = parts.next().map_or(Ok(String::new()), Reply::text)?;
        let status = parts.next().map_or(Ok(None), record::status)?;
        Ok(Self { status, last_told })
    }
}

/// The number that is sent to scripts as the limit of a batch that has no limit.
const UNLIMITED: u32 = 0;

impl Store {
    pub(crate) async fn create_batch(
        &self,
        batch: &NewBatch,
    ) -> Result<Created, Error> {
        let limit = batch.limit.map_or(UNLIMITED, Into::into);
        let mut call = self
            .bookkeeping
            .call(&BATCH_SCRIPTS.create)
            .arg(batch.id.as_str())
            .arg(batch.priority.level())
            .arg(limit)
            .arg(&batch.metadata[..])
            .arg(millis(batch.retention));
        let on_complete = batch.on_complete.as_ref();
        let queue = on_complete.and_then(|it| it.queue.as_ref());
        let queue = queue.filter(|queue| **queue != self.keys.queue);
        call.push_arg(match (on_complete, queue) {
            (None, _) => "",
            (Some(_), None) => "here",
            (Some(_), Some(_)) => "there",
        });
        call.push_arg(queue.map_or("", QueueName::as_str));
        self.push_completion(&mut call, on_complete.map(|it| &it.job));
        let id_end = queue.map(|_| id_end(&batch.id, &self.keys.queue));
        call.push_arg(id_end.unwrap_or_default());
        let made = call.run(&self.conn, Operation::CreateBatch).await?.number()?;
        Ok(if made == 1 { Created::Stored } else { Created::Exists })
    }

    /// Adds the arguments that describe the completion job of a new batch.
    fn push_completion(&self, call: &mut Call, job: Option<&NewJob>) {
        let Some(job) = job else {
            return ["", "0", "0"].into_iter().for_each(|none| call.push_arg(none));
        };
        let expiry = job.expires_in.map_or(0, |expiry| millis(expiry).max(1));
        call.push_arg(entry::encode(
            job,
            &PushToken::random(self.conn.environment().random()).job_id(0),
            // The script that completes the batch sets the time.
            None,
        ));
        call.push_arg(millis(job.delay));
        call.push_arg(expiry);
    }

    pub(crate) async fn add_pieces(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        let ids = self.bookkeeping.ids_for(pieces, token, None);
        let mut call = self
            .bookkeeping
            .call(&BATCH_SCRIPTS.add)
            .arg(batch.as_str())
            .arg(token.map_or("", PushToken::as_str))
            .arg(Bookkeeping::memory_ms());
        for (piece, id) in pieces.iter().zip(&ids) {
            call.push_arg(id.as_str());
            call.push_arg(entry::encode_piece(piece, id, batch));
            call.push_arg(u8::from(entry::is_indexed(piece)));
        }
        let answer = call.run(&self.conn, Operation::AddPieces).await;
        let mut parts = answer.map_err(token_of_another_call)?.parts()?;
        match &parts.part().bytes()?[..] {
            b"closed" => {
                Ok(record::state(parts.part())?.map_or(Added::Unknown, Added::Closed))
            }
            b"stored" => Ok(Added::Stored(pushed(ids, parts)?)),
            _ => Ok(Added::Unknown),
        }
    }

    pub(crate) async fn seal_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.seal).arg(batch.as_str());
        record::status(call.run(&self.conn, Operation::SealBatch).await?)
    }

    /// Cancels a batch and drops a page of its pieces. Returns whether more pieces must
    /// be dropped.
    pub(crate) async fn cancel_batch(
        &self,
        batch: &BatchId,
        page: u32,
    ) -> Result<(bool, Option<BatchStatus>), Error> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.cancel_batch);
        let call = call.arg(batch.as_str()).arg(page);
        let reply = call.run(&self.conn, Operation::CancelBatch).await?;
        let mut parts = reply.list()?.into_iter();
        let (Some(more), Some(known)) = (parts.next(), parts.next()) else {
            return Ok((false, None));
        };
        Ok((more.number()? == 1, record::status(known)?))
    }

    pub(crate) async fn alter_batch(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        let text =
            |value: Option<u32>| value.map_or_else(String::new, |it| it.to_string());
        let priority = text(change.priority.map(|it| u32::from(it.level())));
        let limit = text(change.limit.map(|limit| limit.map_or(UNLIMITED, Into::into)));
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.alter);
        let call = call.arg(batch.as_str()).arg(priority).arg(limit);
        record::status(call.run(&self.conn, Operation::AlterBatch).await?)
    }

    pub(crate) async fn read_batch(
        &self,
        operation: Operation,
        batch: &BatchId,
    ) -> Result<BatchSnapshot, Error> {
        BatchSnapshot::of(self.reading_batch(batch).run(&self.conn, operation).await?)
    }

    /// Builds the call that [`read_batch`](Self::read_batch) makes, but does not send
    /// it. A waiting caller sends it together with its blocking command, right behind
    /// it.
    pub(crate) fn reading_batch(&self, batch: &BatchId) -> Call<'static> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.read_batches);
        call.arg("one").arg(batch.as_str()).arg(1)
    }

    pub(crate) async fn list_batches(
        &self,
        operation: Operation,
        after: Option<&BatchId>,
        most: u32,
    ) -> Result<Vec<BatchStatus>, Error> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.read_batches);
        let call = call.arg("after").arg(after.map_or("", BatchId::as_str)).arg(most);
        let known = call.run(&self.conn, operation).await?.list()?.into_iter().skip(1);
        known.filter_map(|one| record::status(one).transpose()).collect()
    }

    /// Continues unfinished maintenance of batches, such as dropping pieces of
    /// cancelled ones. Handles up to `page` pieces and batches: see
    /// `lua/batch/tend.lua`.
    pub(crate) async fn tend(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.tend).arg(page);
        let more = call.run(&self.conn, Operation::Recover).await?.number()? == 1;
        Ok(Recovered { more, ..Recovered::default() })
    }

    /// Reads up to `most` completion jobs of the outbox. Also returns how many it
    /// holds.
    pub(crate) async fn read_outbox(
        &self,
        operation: Operation,
        most: u32,
    ) -> Result<(Vec<Letter>, u64), Error> {
        let call = self.bookkeeping.call(&BATCH_SCRIPTS.read_outbox).arg(most);
        let mut parts = call.run(&self.conn, operation).await?.parts()?;
        let count = parts.part().count()?;
        let mut letters = Vec::new();
        while let (Some(batch), Some(queue), Some(entry), Some(delay), Some(expiry)) =
            (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
        {
            letters.push(Letter {
                batch: batch.bytes()?,
                queue: queue.text()?,
                entry: entry.bytes()?,
                delay_ms: delay.count()?,
                expires_ms: expiry.count()?,
            });
        }
        Ok((letters, count))
    }

    /// Removes batches from the outbox, each with the id of its completion job that was
    /// pushed. A later batch of the same name stays there.
    pub(crate) async fn leave_outbox<'a>(
        &self,
        operation: Operation,
        pushed: impl Iterator<Item = (&'a Bytes, &'a JobId)>,
    ) -> Result<(), Error> {
        let mut call = self.bookkeeping.call(&BATCH_SCRIPTS.leave_outbox);
        for (batch, job) in pushed {
            call.push_arg(&batch[..]);
            call.push_arg(job.as_str());
        }
        call.run(&self.conn, operation).await.map(drop)
    }
}

/// Returns the end of the id of a completion job in another queue, after the time of creation.
/// The script that creates the batch inserts that time.
fn id_end(batch: &BatchId, own: &QueueName) -> String {
    let at = Timestamp::from_unix_ms(0);
    let (here, there) =
        (batch.completion_job(at), batch.completion_job_elsewhere(at, own));
    there.as_str().strip_prefix(here.as_str()).unwrap_or_default().to_owned()
}

/// Builds the result for each piece of a call: stored, or a duplicate if `duplicates`
/// lists its position.
fn pushed(
    ids: Vec<JobId>,
    mut duplicates: impl Iterator<Item = Reply>,
) -> Result<Vec<Pushed>, Error> {
    let mut pushed: Vec<_> = ids.into_iter().map(Pushed::Stored).collect();
    while let (Some(at), Some(_id)) = (duplicates.next(), duplicates.next()) {
        let at = usize::try_from(at.count()?).unwrap_or(usize::MAX);
        if let Some(answer) = pushed.get_mut(at)
            && let Pushed::Stored(existing) = answer.clone()
        {
            *answer = Pushed::Duplicate { existing, by: DuplicateOf::Id };
        }
    }
    Ok(pushed)
}
