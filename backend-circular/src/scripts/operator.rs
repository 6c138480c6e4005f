//! The calls of operators.

use bytes::Bytes;
use queue_core::{Error, Operation, Stats};
use queue_redis::shelf::Shelf;

use super::{SCRIPTS, Store};

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.shelf.call(&SCRIPTS.stats);
        Shelf::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a job that is an element of the ring; answers the word for how it was.
    pub(crate) async fn cancel_ringed(
        &self,
        element: &Bytes,
    ) -> Result<Option<Bytes>, Error> {
        let call = self
            .shelf
            .call(&SCRIPTS.cancel_ringed)
            .arg(&element[..])
            .arg(Shelf::memory_ms())
            .arg(Shelf::cancelled_memory_ms());
        call.run(&self.conn, Operation::Cancel).await?.optional_bytes()
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let call = self.shelf.call(&SCRIPTS.purge);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
