//! The calls of operators.

use std::time::Duration;

use bytes::Bytes;
use queue_core::{Error, Operation, Stats};
use queue_redis::{entry::millis, shelf::Shelf};

use super::{SCRIPTS, Store};
use crate::session::Site;

/// How long a cancelled job's lease is remembered after its end, so that the worker
/// is told `Cancelled` and not `LeaseLost`.
const CANCELLED_MEMORY: Duration = Duration::from_secs(60);

impl Store {
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let sites = self.sites(Operation::Stats).await?;
        let lists = std::iter::once(self.keys.handed.clone()).chain(self.lists(&sites));
        let mut call = self.shelf.with_keys(lists).call(&SCRIPTS.stats);
        sites.iter().for_each(|site| call.push_arg(site.session()));
        Shelf::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a job that is an element of `list`; answers whether it still was.
    pub(crate) async fn cancel_listed(
        &self,
        list: &str,
        site: &Site,
        element: &Bytes,
    ) -> Result<bool, Error> {
        let call = self
            .shelf
            .with_keys([list.to_owned()])
            .call(&SCRIPTS.cancel_listed)
            .arg(&element[..])
            .arg(site.session())
            .arg(Shelf::memory_ms())
            .arg(millis(CANCELLED_MEMORY));
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Removes all jobs. A worker that came meanwhile is looked for again.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        loop {
            let sites = self.sites(Operation::Purge).await?;
            if let Some(jobs) = self.purge_sites(&sites).await? {
                return Ok(jobs);
            }
        }
    }

    /// Removes all jobs if the sessions are these; answers how many there were.
    async fn purge_sites(&self, sites: &[Site]) -> Result<Option<u64>, Error> {
        let (keys, shelf) = (&self.keys, &self.keys.shelf);
        let lists = self.lists(sites);
        let mut names = vec![&*keys.workers, &keys.retired, &shelf.later, &shelf.dead];
        names.extend([&*keys.ready, &keys.handed]);
        names.extend(lists.iter().map(String::as_str));
        names.push(&keys.leased);
        let others = shelf.all().into_iter();
        let is_more = |key: &&str| {
            ![&shelf.later, &shelf.dead, &shelf.paused].contains(&&(*key).to_owned())
        };
        names.extend(others.filter(is_more));
        let mut call = SCRIPTS.purge.keys(&names).arg(2 + lists.len());
        sites.iter().for_each(|site| call.push_arg(site.session()));
        let jobs = call.run(&self.conn, Operation::Purge).await?;
        if jobs.is_nil() { Ok(None) } else { jobs.count().map(Some) }
    }
}
