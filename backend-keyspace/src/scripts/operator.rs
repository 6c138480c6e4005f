//! Calls the scripts that operators need.

use bytes::Bytes;
use futures_util::future::try_join_all;
use relq_core::{Error, JobId, Stats, error::Operation};
use relq_redis::{bookkeeping::Bookkeeping, command};

use super::{SCRIPTS, Store, worker::PAGE};
use crate::keys;

/// Where a page of a purge begins.
#[derive(Debug)]
pub(crate) struct PurgePage {
    cursor: Bytes,
    /// When the purge began, by the store's clock (ms). The first page sets it.
    began_ms: Option<u64>,
}

impl PurgePage {
    pub(crate) const FIRST: Self =
        Self { cursor: Bytes::from_static(b"0"), began_ms: None };

    /// Whether the last page has been purged.
    pub(crate) fn is_end(&self) -> bool {
        &self.cursor[..] == b"0"
    }
}

impl Store {
    /// Returns the number of jobs in each state. Every key that is not leased and not
    /// the queue's own counts as a ready job.
    pub(crate) async fn stats(&self, operation: Operation) -> Result<Stats, Error> {
        let call = self.call(&SCRIPTS.stats, &[]);
        Bookkeeping::stats(call.run(&self.conn, operation).await?)
    }

    /// Ends a ready job. Returns false if no ready job has this id.
    pub(crate) async fn cancel_ready(&self, job: &JobId) -> Result<bool, Error> {
        let call = self
            .call(&SCRIPTS.cancel_ready, &[keys::item(job.as_str()).into()])
            .arg(Bookkeeping::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Removes the scheduled and dead jobs, all side records, and the ready and leased
    /// jobs of a page. Returns how many jobs there were, and where the next page begins.
    pub(crate) async fn purge(
        &self,
        page: &PurgePage,
    ) -> Result<(u64, PurgePage), Error> {
        let call = self
            .call(&SCRIPTS.purge, &[])
            .arg(&page.cursor[..])
            .arg(PAGE)
            .arg(page.began_ms.map_or_else(String::new, |ms| ms.to_string()))
            .arg(Bookkeeping::memory_ms());
        let reply = call.run(&self.conn, Operation::Purge).await?;
        let mut parts = reply.parts()?;
        let removed = parts.part().count()?;
        let (cursor, began_ms) = (parts.part().bytes()?, parts.part().count()?);
        Ok((removed, PurgePage { cursor, began_ms: Some(began_ms) }))
    }

    /// Returns, for each of the keys, whether it exists.
    pub(crate) async fn are_there(&self, keys: &[Bytes]) -> Result<Vec<bool>, Error> {
        let ask = |key: &Bytes| {
            let mut cmd = command("EXISTS");
            cmd.arg(&key[..]);
            async move {
                let reply = self.conn.call(Operation::Audit, &cmd).await?;
                Ok(reply.number()? == 1)
            }
        };
        try_join_all(keys.iter().map(ask)).await
    }
}
