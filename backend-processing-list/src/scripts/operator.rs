//! Calls the scripts of an operator's methods: stats, cancel, purge.

use bytes::Bytes;
use relq_core::{Error, Stats, error::Operation};
use relq_redis::bookkeeping::Bookkeeping;

use super::{SCRIPTS, Store, sites_of};
use crate::session::{Session, Site};

/// How often stats or purge reads the sessions again because a worker has registered
/// meanwhile. More than this many registrations in a row are not normal use.
const READINGS: usize = 100;

impl Store {
    /// Counts the jobs in each state. If a worker registers between the read of the
    /// sessions and the count, its list may hold a job that was ready before, so both
    /// are repeated.
    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        for _ in 0..READINGS {
            let members = self.members(Operation::Stats).await?;
            let sites = sites_of(&members);
            let lists =
                std::iter::once(self.keys.handed.clone()).chain(self.lists(&sites));
            let mut call = self.bookkeeping.with_keys(lists).call(&SCRIPTS.stats);
            call.push_arg(sites.len());
            sites.iter().for_each(|site| call.push_arg(site.session()));
            members.iter().for_each(|member| call.push_arg(&member[..]));
            let counted = call.run(&self.conn, Operation::Stats).await?;
            if !counted.is_nil() {
                return Bookkeeping::stats(counted);
            }
        }
        Err(self.workers_register(Operation::Stats))
    }

    fn workers_register(&self, operation: Operation) -> Error {
        let source = "workers register again and again: stop them, and try again";
        Error::Unavailable { at: self.conn.at(operation), source: source.into() }
    }

    /// Ends a job that is an element of `list`. Returns false if the element is gone.
    pub(crate) async fn cancel_listed(
        &self,
        list: &str,
        site: &Site,
        element: &Bytes,
    ) -> Result<bool, Error> {
        let call = self
            .bookkeeping
            .with_keys([list.to_owned()])
            .call(&SCRIPTS.cancel_listed)
            .arg(&element[..])
            .arg(site.session())
            .arg(Bookkeeping::memory_ms())
            .arg(Bookkeeping::cancelled_memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Removes all jobs. Returns how many there were. If a worker registers between the
    /// read of the sessions and the removal, both are repeated. A member of the
    /// registry that is not a session, which another client has added, is removed too.
    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        for _ in 0..READINGS {
            let members = self.members(Operation::Purge).await?;
            if let Some(jobs) = self.purge_sessions(&members).await? {
                let foreign = members.iter().filter(|it| Session::parse(it).is_none());
                for member in foreign {
                    let member = String::from_utf8_lossy(member);
                    tracing::warn!(%member, "removed a member that is not a session");
                }
                return Ok(jobs);
            }
        }
        Err(self.workers_register(Operation::Purge))
    }

    /// Removes all jobs, and returns how many there were. Removes nothing and returns
    /// `None` if the registry has a member that is not in `members`.
    async fn purge_sessions(&self, members: &[Bytes]) -> Result<Option<u64>, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let lists = self.lists(&sites_of(members));
        let mut names =
            vec![&*keys.workers, &keys.retired, &bookkeeping.later, &bookkeeping.dead];
        names.extend([&*keys.ready, &keys.handed]);
        names.extend(lists.iter().map(String::as_str));
        names.push(&keys.leased);
        let told: [&str; 3] =
            [&bookkeeping.later, &bookkeeping.dead, &bookkeeping.paused];
        names.extend(bookkeeping.all().into_iter().filter(|key| !told.contains(key)));
        let mut call = SCRIPTS.purge.keys(&names).arg(2 + lists.len());
        members.iter().for_each(|member| call.push_arg(&member[..]));
        let jobs = call.run(&self.conn, Operation::Purge).await?;
        if jobs.is_nil() { Ok(None) } else { jobs.count().map(Some) }
    }
}
