//! The worker's side.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use queue_core::{
    Capabilities, Capability, ClaimRequest, Delivery, Error, Extended, LeaseScope,
    Limits, NewJob, Operation, Order, Priority, PushToken, Pushed, QueueName, Receipt,
    Recovered, RecoveryBound, Released, ReliableQueue, Settled, Settlement, Turn,
    WorkerId,
};
use queue_redis::{
    Conn, Parts, entry,
    shelf::{self, Outlook, Waits},
};

use crate::{
    KeyspaceConfig,
    config::Strangers,
    database, lease,
    lease::Lease,
    pick::Finder,
    recover::{Adoption, Freeing},
    scripts::Store,
    wait::{Bells, RECHECK, Woken},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_BATCH: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "keyspace",
    claimed: &[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Unique,
        Capability::Expiry,
        Capability::BlockingWait,
    ],
    priorities: Priority::NORMAL..=Priority::NORMAL,
    lateness: RECHECK,
    order: Order::Unordered,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits {
        max_payload: 16 * 1024 * 1024,
        max_headers: 64 * 1024,
        max_batch: MAX_BATCH,
    },
};

/// A queue that is a whole database of a Redis server: each job is a key.
///
/// Cheap to share: put it in an [`Arc`].
pub struct KeyspaceQueue {
    pub(crate) store: Store,
    pub(crate) strangers: Strangers,
    pub(crate) finder: Finder,
    pub(crate) adoption: Adoption,
    pub(crate) freeing: Freeing,
    bells: Bells,
}

impl KeyspaceQueue {
    /// Connects to the server and opens the queue of that name in the URL's database.
    /// Nothing is written. With its first write the database is the queue's alone.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a node of a Redis Cluster, a queue of another backend, a database
    /// that does not exist, is that of another queue, or holds keys that are none of
    /// the queue's.
    pub async fn connect(
        config: KeyspaceConfig,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let strangers = config.strangers;
        let (redis, owner) = config.owner(queue.clone());
        let opened = Conn::open_queue(owner, redis).await;
        let conn = opened.map_err(database::say_of_a_cluster)?;
        let opened = Self::on(conn, queue, strangers).await?;
        database::check(&opened.store, strangers).await?;
        Ok(opened)
    }

    async fn on(
        conn: Conn,
        queue: QueueName,
        strangers: Strangers,
    ) -> Result<Self, Error> {
        let store = Store::new(conn, queue);
        store.load_scripts().await?;
        Ok(Self {
            bells: Bells::new(&store),
            finder: Finder::new(),
            adoption: Adoption::new(),
            freeing: Freeing::new(),
            store,
            strangers,
        })
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.store.keys.queue
    }
}

#[async_trait]
impl ReliableQueue for KeyspaceQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        CAPABILITIES.check_push(jobs, token.is_some())?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let ids = self.store.shelf.ids_for(jobs, token);
        if token.is_none() && jobs.iter().all(shelf::is_plain) {
            let encode = |(job, id)| entry::encode(job, id);
            let entries: Vec<_> = jobs.iter().zip(&ids).map(encode).collect();
            // A random id that is taken all the same is left to the other script.
            if self.store.append(&ids, &entries).await? {
                return Ok(ids.into_iter().map(Pushed::Stored).collect());
            }
        }
        self.store.push(jobs, ids, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        shelf::claim(self, ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        shelf::settle(&self.store, done).await
    }

    /// The settlements and the picking of jobs share a round trip; the claim of what
    /// was picked is a second one.
    async fn turn(&self, done: &[Settlement], ask: &ClaimRequest) -> Turn {
        shelf::turn(self, done, ask).await
    }

    async fn extend(
        &self,
        _worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let (keys, names) = (&self.store.keys, held.iter().map(lease::key_of));
        self.store.shelf.extend(&CAPABILITIES, &keys.leased, names, lease).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<Released, Error> {
        let pattern = format!("*{}", lease::suffix(worker));
        let leases = self.find_leases(Operation::Leave, &pattern).await?;
        let leases: Vec<_> = leases.into_iter().map(|(key, _)| key.into()).collect();
        let mut jobs = leases.len();
        let mut parts = Parts::default();
        for page in leases.chunks(MAX_BATCH.get() as usize) {
            jobs -=
                parts.then(self.store.give_back(Operation::Leave, page).await)?.len();
        }
        Ok(Released { jobs: jobs as u64 })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_BATCH).get();
        self.recover_page(page).await
    }

    async fn sibling(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.sibling().await?;
        Ok(Arc::new(Self::on(conn, self.name().clone(), self.strangers).await?))
    }
}

#[async_trait]
impl Waits for KeyspaceQueue {
    async fn wait(&self, outlook: Outlook, limit: Duration) {
        if self.bells.wait(outlook, limit).await == Woken::ByRing {
            self.finder.forget();
        }
    }
}

impl fmt::Display for KeyspaceQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keyspace queue {} at {}", self.name(), self.store.conn)
    }
}

impl fmt::Debug for KeyspaceQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyspaceQueue({self})")
    }
}

impl KeyspaceQueue {
    /// All leases whose processing key matches a glob pattern.
    pub(crate) async fn find_leases(
        &self,
        operation: Operation,
        pattern: &str,
    ) -> Result<Vec<(Bytes, Lease)>, Error> {
        let leases = self
            .store
            .shelf
            .scan_matching(operation, "ZSCAN", &self.store.keys.leased, pattern)
            .await?;
        let parse = |(key, _)| Lease::parse(&key).map(|lease| (key, lease));
        Ok(leases.into_iter().filter_map(parse).collect())
    }
}
