//! The pattern: a whole database of a Redis server, in which each job is a key.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, QueueName, Receipt, Stats, WorkerId,
    capabilities::Capabilities,
    error::Operation,
    operator::{Page, PeekRequest},
    outcome::Recovered,
};
use relq_redis::{
    Cmd, Conn, PartialEffect, RedisQueue, Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, Step},
    pattern::{CancelSearch, JobRef, Notification, Pattern, WakeConditions},
};

use crate::{
    Keyspace, KeyspaceConfig, audit, cancel,
    capabilities::CAPABILITIES,
    claim::Contended,
    database, keys, lease,
    lease::Lease,
    peek,
    pick::Finder,
    purge,
    recover::{self, Adoption, Freeing},
    scripts,
    scripts::Store,
    stats,
};

/// A queue that is a whole database of a Redis server: each job is a key.
///
/// The queue opens the database that the URL names. From the first write on, the
/// database belongs to this queue alone. Opening fails with
/// [`Unusable`](relq_core::Error::Unusable) on a node of a Redis Cluster, on the
/// database of another queue, and on a database that holds foreign keys, unless the
/// configuration tolerates them.
///
/// Cheap to share: put it in an [`Arc`](std::sync::Arc).
pub type KeyspaceQueue = RedisQueue<Keyspace>;

#[async_trait]
impl Pattern for Keyspace {
    type Config = KeyspaceConfig;
    type ClaimState = Contended;

    const QUEUE: &'static str = "KeyspaceQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, config: &KeyspaceConfig) -> Self {
        Self {
            store: Store::new(conn, queue),
            foreign_keys: config.foreign_keys,
            finder: Finder::new(),
            adoption: Adoption::new(),
            freeing: Freeing::new(),
        }
    }

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    /// Stores jobs without options by one script, all or none. Returns `false` if one of
    /// the ids is taken, even a generated one. The caller then stores the jobs by the
    /// bookkeeping's push script.
    async fn append(
        &self,
        ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.store.append(ids, &entries).await
    }

    /// Claims jobs by two calls. The first picks jobs, in one round trip with waiting
    /// settlements; the second leases the picked jobs.
    async fn try_claim(
        &self,
        ask: &ClaimRequest,
        contended: &mut Contended,
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error> {
        self.pick_and_lease(ask, contended, parts).await
    }

    fn lease(token: &Bytes, id: &[u8]) -> Vec<u8> {
        lease::key_by(token, &text(id)).into()
    }

    fn has_side_records(token: &Bytes) -> bool {
        lease::has_side_records(token)
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Step, Error> {
        self.store.finish(receipts, finish).await
    }

    async fn heartbeat(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Beat, Error> {
        let processing = held.iter().map(lease::key_of);
        self.store.bookkeeping.beat(&self.store.keys.leased, processing, lease).await
    }

    /// Returns all leases of a worker, unsorted: ready jobs of this pattern have no
    /// order.
    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let (leased, glob) =
            (&self.store.keys.leased, format!("*{}", lease::suffix(worker)));
        let operation = Operation::ReleaseWorker;
        let found =
            self.store.bookkeeping.find_leases(operation, leased, Lease::parse, &glob);
        let leases = found.await?;
        Ok(leases.into_iter().map(|(key, _)| key.into()).collect())
    }

    async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        recover::recover(&self.store, &self.adoption, &self.freeing, page).await
    }

    /// Returns no command: every script that makes a job ready also leaves a token in
    /// the list `wake`, to which all notifiers listen.
    fn arrivals(&self, _block: Duration) -> Option<Cmd> {
        None
    }

    async fn pass_on(&self, _unheard: Notification) -> Result<(), Error> {
        self.store.notify().await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        stats::stats(&self.store, self.foreign_keys).await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn cancel(&self, job: &JobId) -> Result<CancelSearch, Error> {
        cancel::cancel(self, job).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        purge::purge(&self.store).await
    }

    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error> {
        audit::read(&self.store, self.foreign_keys, seen).await
    }

    async fn check_server(&self) -> Result<(), Error> {
        database::check(&self.store, self.foreign_keys).await
    }

    fn explain(error: Error) -> Error {
        database::say_of_a_cluster(error)
    }

    fn job_keys(job: JobRef<'_>) -> Vec<String> {
        match job {
            JobRef::Pushed(id) => vec![keys::item(id.as_str())],
            JobRef::Leased(lease) => vec![text(lease)],
            JobRef::GivenBack(lease) => {
                let id = lease::id_of(&Bytes::copy_from_slice(lease));
                vec![text(lease), keys::item(&text(&id))]
            }
        }
    }

    fn on_notified(&self) {
        self.finder.forget();
    }
}

/// Converts a name from bytes to text. relq made the name, so it is always valid text.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
