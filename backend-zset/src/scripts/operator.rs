//! The calls of operators.

use bytes::Bytes;
use queue_core::{Error, JobId, Operation, Stats};
use queue_redis::shelf::Shelf;

use super::{SCRIPTS, Store};

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let shelf = self.shelf.with_keys([self.keys.handed.clone()]);
        Shelf::stats(
            shelf.call(&SCRIPTS.stats).run(&self.conn, Operation::Stats).await?,
        )
    }

    /// Ends a ready job of another priority than the normal; answers whether it was
    /// there.
    pub(crate) async fn cancel_ranked(&self, job: &JobId) -> Result<bool, Error> {
        let call = self
            .shelf
            .call(&SCRIPTS.cancel_ranked)
            .arg(job.as_str())
            .arg(Shelf::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Ends a job that is an element of `list`; answers whether it still was.
    pub(crate) async fn cancel_listed(
        &self,
        list: &str,
        element: &Bytes,
    ) -> Result<bool, Error> {
        let shelf = &self.keys.shelf;
        let call = SCRIPTS
            .cancel_listed
            .keys(&[list, &shelf.unique, &shelf.ids, &shelf.errors, &shelf.totals])
            .arg(&element[..])
            .arg(Shelf::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let (keys, shelf) = (&self.keys, &self.keys.shelf);
        let call = SCRIPTS.purge.keys(&[
            &keys.ready,
            &keys.handed,
            &keys.ranked,
            &shelf.later,
            &keys.leased,
            &shelf.dead,
            &keys.held,
            &shelf.jobs,
            &shelf.errors,
            &shelf.unique,
            &shelf.ids,
            &shelf.calls,
            &shelf.answers,
            &shelf.cancelled,
            &shelf.totals,
            &shelf.wake,
        ]);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
