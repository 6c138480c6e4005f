//! Calls the scripts that operators need: stats, cancel and purge.

use bytes::Bytes;
use relq_core::{Error, Stats, error::Operation};
use relq_redis::bookkeeping::Bookkeeping;

use super::{SCRIPTS, Store};

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.stats);
        Bookkeeping::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a job that is an element of the ring. Returns the job's earlier state as a
    /// word, `ready` or `leased`.
    pub(crate) async fn cancel_ringed(
        &self,
        element: &Bytes,
    ) -> Result<Option<Bytes>, Error> {
        let call = self
            .bookkeeping
            .call(&SCRIPTS.cancel_ringed)
            .arg(&element[..])
            .arg(Bookkeeping::memory_ms())
            .arg(Bookkeeping::cancelled_memory_ms());
        call.run(&self.conn, Operation::Cancel).await?.optional_bytes()
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.purge);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
