//! Parses the status of a batch, as `status_of` in `lua/batch/records.lua` returns it.

use std::num::NonZeroU32;

use relq_core::{
    Error,
    batch::{BatchId, BatchPriority, BatchState, BatchStatus},
    environment::Timestamp,
};
use relq_redis::Reply;

/// Parses the status of a batch. Returns `None` if the batch does not exist.
pub(crate) fn status(reply: Reply) -> Result<Option<BatchStatus>, Error> {
    let mut fields = StatusFields(reply.list()?.into_iter());
    let Some(id) = fields.text()?.and_then(|id| BatchId::new(id).ok()) else {
        return Ok(None);
    };
    let state = fields.text()?.and_then(|word| BatchState::from_word(&word));
    let priority = fields.small()?.and_then(BatchPriority::new).unwrap_or_default();
    let limit = u32::try_from(fields.count()?).unwrap_or(u32::MAX);
    let metadata = fields.next().map_or(Ok(None), Reply::optional_bytes)?;
    let [total, done, failed, dropped, leased, waiting] = fields.counts()?;
    let created_at = fields.time()?.unwrap_or(Timestamp::from_unix_ms(0));
    let mut status = BatchStatus::new(id, created_at);
    status.state = state.unwrap_or(BatchState::Open);
    status.priority = priority;
    status.limit = NonZeroU32::new(limit);
    status.metadata = metadata.unwrap_or_default();
    (status.total, status.done, status.failed) = (total, done, failed);
    (status.dropped, status.leased, status.waiting) = (dropped, leased, waiting);
    status.sealed_at = fields.time()?;
    status.completed_at = fields.time()?;
    Ok(Some(status))
}

/// Parses the state of a batch from its name. Returns `None` for an unknown name.
pub(crate) fn state(reply: Reply) -> Result<Option<BatchState>, Error> {
    Ok(BatchState::from_word(&reply.text()?))
}

struct StatusFields(std::vec::IntoIter<Reply>);

impl StatusFields {
    fn next(&mut self) -> Option<Reply> {
        self.0.next()
    }

    fn text(&mut self) -> Result<Option<String>, Error> {
        self.next().map(Reply::text).transpose()
    }

    fn count(&mut self) -> Result<u64, Error> {
        self.next().map_or(Ok(0), Reply::count)
    }

    fn small(&mut self) -> Result<Option<u8>, Error> {
        Ok(u8::try_from(self.count()?).ok())
    }

    fn counts<const N: usize>(&mut self) -> Result<[u64; N], Error> {
        let mut counts = [0; N];
        for count in &mut counts {
            *count = self.count()?;
        }
        Ok(counts)
    }

    /// Parses the next field as a time (ms). Returns `None` for `-1`.
    fn time(&mut self) -> Result<Option<Timestamp>, Error> {
        let ms = self.next().map_or(Ok(-1), Reply::number)?;
        Ok((ms >= 0).then(|| Timestamp::from_unix_ms(ms)))
    }
}
