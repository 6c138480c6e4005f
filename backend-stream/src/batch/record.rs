//! What scripts tell of a batch: `status_of` in `lua/batch/books.lua`.

use std::num::NonZeroU32;

use queue_core::{BatchId, BatchPriority, BatchState, BatchStatus, Error, Timestamp};
use queue_redis::Reply;

/// What is known of a batch; `None` when there is none.
pub(crate) fn status(reply: Reply) -> Result<Option<BatchStatus>, Error> {
    let mut parts = Parts(reply.list()?.into_iter());
    let Some(id) = parts.text()?.and_then(|id| BatchId::new(id).ok()) else {
        return Ok(None);
    };
    let state = parts.text()?.and_then(|word| BatchState::from_word(&word));
    let priority = parts.small()?.and_then(BatchPriority::new).unwrap_or_default();
    let limit = u32::try_from(parts.count()?).unwrap_or(u32::MAX);
    let metadata = parts.next().map_or(Ok(None), Reply::optional_bytes)?;
    let [total, done, failed, dropped, leased, waiting] = parts.counts()?;
    let created_at = parts.time()?.unwrap_or(Timestamp::from_unix_ms(0));
    let mut status = BatchStatus::new(id, created_at);
    status.state = state.unwrap_or(BatchState::Open);
    status.priority = priority;
    status.limit = NonZeroU32::new(limit);
    status.metadata = metadata.unwrap_or_default();
    (status.total, status.done, status.failed) = (total, done, failed);
    (status.dropped, status.leased, status.waiting) = (dropped, leased, waiting);
    status.sealed_at = parts.time()?;
    status.completed_at = parts.time()?;
    Ok(Some(status))
}

/// A state, by its word.
pub(crate) fn state(reply: Reply) -> Result<Option<BatchState>, Error> {
    Ok(BatchState::from_word(&reply.text()?))
}

struct Parts(std::vec::IntoIter<Reply>);

impl Parts {
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

    /// `-1` stands for none.
    fn time(&mut self) -> Result<Option<Timestamp>, Error> {
        let ms = self.next().map_or(Ok(-1), Reply::number)?;
        Ok((ms >= 0).then(|| Timestamp::from_unix_ms(ms)))
    }
}
