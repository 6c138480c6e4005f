//! The functions that call the scripts for operators.

use bytes::Bytes;
use relq_core::{Error, Stats, error::Operation};
use relq_redis::{PartialEffect, all_steps, bookkeeping::Bookkeeping};

use super::{SCRIPTS, Store};
use crate::keys::Stream;

/// How many batches or pieces one script call of a purge removes. It is limited because the
/// server runs no other command meanwhile.
const PURGED_BATCHES: u32 = 500;

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.stats);
        Bookkeeping::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Cancels a ready job, which is found by its stream and the id of its entry.
    /// Returns false if the job was no longer ready.
    pub(crate) async fn cancel_ready(
        &self,
        stream: &Stream,
        entry_id: &Bytes,
    ) -> Result<bool, Error> {
        let call = self
            .bookkeeping
            .call(&SCRIPTS.cancel_ready)
            .arg(stream.word())
            .arg(&entry_id[..])
            .arg(Bookkeeping::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Removes the batches page by page until one step can remove the rest of the queue. If
    /// the purge is interrupted, the rest is unchanged. A batch that has lost only some of
    /// its pieces counts these as dropped.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        all_steps(Operation::Purge, self.purge_all()).await
    }

    async fn purge_all(&self) -> Result<u64, Error> {
        let (mut jobs, mut partial) = (0, PartialEffect::default());
        loop {
            let call = self.bookkeeping.call(&SCRIPTS.purge).arg(PURGED_BATCHES);
            let reply = call.run(&self.conn, Operation::Purge).await;
            let mut parts = partial.then(reply)?.parts()?;
            jobs += parts.part().count()?;
            if parts.part().number()? == 0 {
                return Ok(jobs);
            }
        }
    }
}
