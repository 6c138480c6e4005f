//! The calls of operators.

use bytes::Bytes;
use queue_core::{Error, Operation, Stats};
use queue_redis::shelf::Shelf;

use super::{SCRIPTS, Store};
use crate::keys::Stream;

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.shelf.call(&SCRIPTS.stats);
        Shelf::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a job that is ready in a stream, by the id of its entry there; answers
    /// whether it still was.
    pub(crate) async fn cancel_ready(
        &self,
        stream: &Stream,
        entry_id: &Bytes,
    ) -> Result<bool, Error> {
        let call = self
            .shelf
            .call(&SCRIPTS.cancel_ready)
            .arg(stream.word())
            .arg(&entry_id[..])
            .arg(Shelf::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let call = self.shelf.call(&SCRIPTS.purge);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
