//! The SQL statements for batches, as functions.

use std::num::NonZeroU32;

use relq_core::{
    Bytes,
    batch::{BatchId, BatchPriority, BatchState, BatchStatus, Change, NewBatch},
    environment::Timestamp,
};
use rusqlite::{Row, params};

use super::results::{Remembered, read_remembered};
use super::sql;
use super::working::{ReadyRow, read_ready};
use crate::failure::Failure;
use crate::store::{Store, ms};

/// A sealed batch whose pieces have all ended.
pub(crate) struct EndedBatch {
    pub(crate) batch: i64,
    pub(crate) id: String,
    pub(crate) created_at: i64,
}

/// The job that a batch's completion pushes, as a row of `completions`.
pub(crate) struct CompletionRow {
    /// The queue to push the job to. `None` for the batch's own queue.
    pub(crate) queue_name: Option<String>,
    pub(crate) payload: Vec<u8>,
    pub(crate) headers: Option<Vec<u8>>,
    pub(crate) priority: u8,
    pub(crate) delay_ms: u64,
    pub(crate) expires_ms: Option<u64>,
    pub(crate) max_attempts: u16,
    pub(crate) lease_ms: Option<u64>,
    pub(crate) keep_ms: Option<u64>,
}

/// A piece of a cancelled batch that was removed while it waited.
pub(crate) struct Dropped {
    pub(crate) job: i64,
    pub(crate) remembered: Remembered,
}

impl Store<'_> {
    /// Creates a batch and returns its key. Returns `None` if the id is already in use.
    pub(crate) fn add_batch(&self, batch: &NewBatch) -> Result<Option<i64>, Failure> {
        let params = params![
            self.queue,
            batch.id.as_str(),
            batch.priority.level(),
            batch.limit.map(NonZeroU32::get),
            &*batch.metadata,
            ms(batch.retention),
            self.now_ms(),
        ];
        self.find(sql!("batch_add"), params, |row| row.get(0))
    }

    pub(crate) fn add_completion(
        &self,
        batch: i64,
        row: &CompletionRow,
    ) -> Result<(), Failure> {
        let params = params![
            batch,
            row.queue_name,
            row.payload,
            row.headers,
            row.priority,
            row.delay_ms,
            row.expires_ms,
            row.max_attempts,
            row.lease_ms,
            row.keep_ms,
        ];
        self.change(sql!("completion_add"), params)?;
        Ok(())
    }

    /// Finds the key and the state of the batch with this id.
    pub(crate) fn find_batch(
        &self,
        id: &BatchId,
    ) -> Result<Option<(i64, BatchState)>, Failure> {
        let params = params![self.queue, id.as_str()];
        let found = self.find(sql!("batch_find"), params, |row| {
            Ok((row.get(0)?, row.get::<_, String>(1)?))
        })?;
        found.map(|(key, state)| Ok((key, read_state(&state)?))).transpose()
    }

    pub(crate) fn read_batch(
        &self,
        id: &BatchId,
    ) -> Result<Option<BatchStatus>, Failure> {
        let params = params![self.queue, id.as_str()];
        self.find(sql!("batch_read"), params, read_row)?.map(status).transpose()
    }

    /// Reads one page of batches, sorted by id. The page starts after the given id.
    pub(crate) fn list_batches(
        &self,
        after: Option<&BatchId>,
        most: u32,
    ) -> Result<Vec<BatchStatus>, Failure> {
        let params = params![self.queue, after.map_or("", BatchId::as_str), most];
        let page = self.list(sql!("batch_list"), params, read_row)?;
        page.into_iter().map(status).collect()
    }

    /// Adds the number of newly stored pieces to the batch's total and to its ready
    /// count.
    pub(crate) fn count_added(&self, batch: i64, pieces: usize) -> Result<(), Failure> {
        self.change(sql!("batch_count"), params![batch, pieces])?;
        Ok(())
    }

    pub(crate) fn seal_batch(&self, id: &BatchId) -> Result<(), Failure> {
        let params = params![self.queue, id.as_str(), self.now_ms()];
        self.change(sql!("batch_seal"), params)?;
        Ok(())
    }

    pub(crate) fn cancel_batch(&self, id: &BatchId) -> Result<(), Failure> {
        self.change(sql!("batch_cancel"), params![self.queue, id.as_str()])?;
        Ok(())
    }

    pub(crate) fn alter_batch(
        &self,
        id: &BatchId,
        change: &Change,
    ) -> Result<(), Failure> {
        let slots = change.limit.flatten().map(NonZeroU32::get);
        let priority = change.priority.map(BatchPriority::level);
        let params =
            params![self.queue, id.as_str(), priority, change.limit.is_some(), slots];
        self.change(sql!("batch_alter"), params)?;
        Ok(())
    }

    /// Reads ready pieces of the batch that the next claim serves: at most `most`, and
    /// no more than its free slots. Stops before the first piece that is not wanted.
    pub(crate) fn next_pieces(
        &self,
        most: usize,
        is_wanted: impl FnMut(&ReadyRow) -> bool,
    ) -> Result<Vec<ReadyRow>, Failure> {
        let next = self.find(sql!("batch_claimable"), [self.queue], |row| {
            let free: Option<usize> = row.get(2)?;
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, free))
        })?;
        let Some((batch, id, free)) = next else { return Ok(Vec::new()) };
        let most = free.map_or(most, |free| free.min(most));
        let read = |row: &Row<'_>| {
            Ok(ReadyRow { batch: Some(id.clone()), ..read_ready(row)? })
        };
        self.list_while(sql!("piece_next"), params![batch, most], read, is_wanted)
    }

    pub(crate) fn count_done(&self, batch: i64) -> Result<(), Failure> {
        self.change(sql!("piece_done"), [batch])?;
        Ok(())
    }

    /// Finds the next cancelled batch, after the key `last`, that has waiting pieces.
    pub(crate) fn batch_to_empty(
        &self,
        last: Option<i64>,
    ) -> Result<Option<i64>, Failure> {
        let params = params![self.queue, last.unwrap_or_default()];
        self.find(sql!("batch_to_empty"), params, |row| row.get(0))
    }

    /// Removes up to `most` waiting pieces of a batch. The caller removes their bodies.
    pub(crate) fn drop_pieces(
        &self,
        batch: i64,
        most: u32,
    ) -> Result<Vec<Dropped>, Failure> {
        self.list(sql!("piece_drop"), params![batch, most], |row| {
            Ok(Dropped { job: row.get(0)?, remembered: read_remembered(row, 1)? })
        })
    }

    pub(crate) fn batches_to_complete(
        &self,
        most: u32,
    ) -> Result<Vec<EndedBatch>, Failure> {
        self.list(sql!("batch_to_complete"), params![self.queue, most], |row| {
            Ok(EndedBatch {
                batch: row.get(0)?,
                id: row.get(1)?,
                created_at: row.get(2)?,
            })
        })
    }

    pub(crate) fn complete_batch(&self, batch: i64) -> Result<(), Failure> {
        self.change(sql!("batch_complete"), params![batch, self.now_ms()])?;
        Ok(())
    }

    /// Reads the name of the queue.
    pub(crate) fn queue_name(&self) -> Result<String, Failure> {
        let name = self.find(sql!("queue_name"), [self.queue], |row| row.get(0))?;
        name.ok_or_else(|| Failure::unusable("the queue is not in the file"))
    }

    /// Removes and returns the job that the batch's completion pushes.
    pub(crate) fn take_completion(
        &self,
        batch: i64,
    ) -> Result<Option<CompletionRow>, Failure> {
        self.find(sql!("completion_take"), [batch], |row| {
            Ok(CompletionRow {
                queue_name: row.get(0)?,
                payload: row.get(1)?,
                headers: row.get(2)?,
                priority: row.get(3)?,
                delay_ms: row.get(4)?,
                expires_ms: row.get(5)?,
                max_attempts: row.get(6)?,
                lease_ms: row.get(7)?,
                keep_ms: row.get(8)?,
            })
        })
    }

    /// Whether any batch of the queue needs maintenance: it has pieces to drop, can be
    /// completed, or must be removed.
    pub(crate) fn needs_maintenance(&self) -> Result<bool, Failure> {
        let params = params![self.queue, self.now_ms()];
        self.read(sql!("batch_maintenance"), params, |row| row.get(0))
    }

    /// Removes up to `most` batches whose retention has expired. Returns how many.
    pub(crate) fn remove_batches(&self, most: u32) -> Result<usize, Failure> {
        let params = params![self.queue, self.now_ms(), most];
        self.change(sql!("batch_remove"), params)
    }

    /// Closes all batches of the queue as cancelled, without pushing completion jobs.
    pub(crate) fn close_batches(&self) -> Result<(), Failure> {
        self.change(sql!("purge_completions"), [self.queue])?;
        self.change(sql!("purge_close_batches"), params![self.queue, self.now_ms()])?;
        Ok(())
    }
}

/// The status of a batch as read from the database. Its texts are not validated yet.
struct BatchRow {
    id: String,
    state: String,
    priority: u8,
    slots: Option<u32>,
    metadata: Vec<u8>,
    /// How many pieces the batch has, in this order: total, done, failed, ready,
    /// scheduled, leased.
    pieces: [u64; 6],
    created_at: i64,
    sealed_at: Option<i64>,
    completed_at: Option<i64>,
}

fn read_row(row: &Row<'_>) -> rusqlite::Result<BatchRow> {
    let mut pieces = [0; 6];
    for (index, count) in pieces.iter_mut().enumerate() {
        *count = row.get(5 + index)?;
    }
    Ok(BatchRow {
        id: row.get(0)?,
        state: row.get(1)?,
        priority: row.get(2)?,
        slots: row.get(3)?,
        metadata: row.get(4)?,
        pieces,
        created_at: row.get(11)?,
        sealed_at: row.get(12)?,
        completed_at: row.get(13)?,
    })
}

fn status(row: BatchRow) -> Result<BatchStatus, Failure> {
    let id = BatchId::new(&row.id).map_err(|error| damaged(&error.to_string()))?;
    let mut status = BatchStatus::new(id, Timestamp::from_unix_ms(row.created_at));
    let [total, done, failed, ready, scheduled, leased] = row.pieces;
    let rest = total.checked_sub(done + failed + ready + scheduled + leased);
    status.dropped = rest.ok_or_else(|| damaged("its pieces are miscounted"))?;
    status.state = read_state(&row.state)?;
    status.priority = BatchPriority::new(row.priority)
        .ok_or_else(|| damaged("its priority is too high"))?;
    status.limit = row.slots.and_then(NonZeroU32::new);
    status.metadata = Bytes::from(row.metadata);
    (status.total, status.done, status.failed) = (total, done, failed);
    (status.leased, status.waiting) = (leased, ready + scheduled);
    status.sealed_at = row.sealed_at.map(Timestamp::from_unix_ms);
    status.completed_at = row.completed_at.map(Timestamp::from_unix_ms);
    Ok(status)
}

fn read_state(word: &str) -> Result<BatchState, Failure> {
    BatchState::from_word(word).ok_or_else(|| damaged("it is in no known state"))
}

fn damaged(what: &str) -> Failure {
    Failure::unusable(format!("a batch is damaged: {what}; run an audit"))
}
