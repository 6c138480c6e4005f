//! The script calls of operators.

use bytes::Bytes;
use relq_core::{Error, Stats, error::Operation};
use relq_redis::bookkeeping::Bookkeeping;

use super::{SCRIPTS, Store};
use crate::keys::Stream;

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.stats);
        Bookkeeping::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a ready job in a stream, by the id of its entry there. Returns whether it
    /// was still ready.
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

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.purge);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
