//! Calls the scripts that operators need: stats, cancel and purge.

use bytes::Bytes;
use relq_core::{Error, JobId, Stats, error::Operation};
use relq_redis::bookkeeping::Bookkeeping;

use super::{SCRIPTS, Store};

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let bookkeeping = self.bookkeeping.with_keys([self.keys.handed.clone()]);
        Bookkeeping::stats(
            bookkeeping.call(&SCRIPTS.stats).run(&self.conn, Operation::Stats).await?,
        )
    }

    /// Ends a ready job whose priority is not normal. Returns whether it was ready.
    pub(crate) async fn cancel_ranked(&self, job: &JobId) -> Result<bool, Error> {
        let call = self
            .bookkeeping
            .call(&SCRIPTS.cancel_ranked)
            .arg(job.as_str())
            .arg(Bookkeeping::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Ends a job that is an element of `list`. Returns whether it was still there.
    pub(crate) async fn cancel_listed(
        &self,
        list: &str,
        element: &Bytes,
    ) -> Result<bool, Error> {
        let bookkeeping = &self.keys.bookkeeping;
        let list = list.to_owned();
        let keys = self.with_absent(vec![
            &list,
            &bookkeeping.unique,
            &bookkeeping.ids,
            &bookkeeping.errors,
            &bookkeeping.totals,
        ]);
        let call = SCRIPTS
            .cancel_listed
            .keys(&keys)
            .arg(&element[..])
            .arg(Bookkeeping::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let call = SCRIPTS.purge.keys(&[
            &keys.ready,
            &keys.handed,
            &keys.ranked,
            &bookkeeping.later,
            &keys.leased,
            &bookkeeping.dead,
            &bookkeeping.errors,
            &keys.held,
            &bookkeeping.jobs,
            &bookkeeping.unique,
            &bookkeeping.ids,
            &bookkeeping.calls,
            &bookkeeping.answers,
            &bookkeeping.cancelled,
            &bookkeeping.totals,
            &bookkeeping.wake,
        ]);
        call.run(&self.conn, Operation::Purge).await?.count()
    }
}
