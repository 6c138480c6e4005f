//! The worker's side.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    Capabilities, Capability, ClaimRequest, Delivery, Error, Extended, LeaseScope,
    Limits, NewJob, Operation, Order, Priority, PushToken, Pushed, QueueName, Receipt,
    Recovered, RecoveryBound, Released, ReliableQueue, Settled, SettledAndClaimed,
    Settlement, WorkerId,
};
use relq_redis::{
    Conn, PartialEffect,
    bookkeeping::{self, WaitHint, WaitingPattern},
    entry,
};

use crate::{
    KeyspaceConfig,
    config::ForeignKeys,
    database, lease,
    lease::Lease,
    pick::Finder,
    recover::{Adoption, Freeing},
    scripts::Store,
    wait::{Notifiers, RECHECK, Woken},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_JOBS_PER_CALL: NonZeroU32 =
    NonZeroU32::new(1000).expect("not zero");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "keyspace",
    supported: &[
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
        max_jobs_per_call: MAX_JOBS_PER_CALL,
    },
};

/// A queue that is a whole database of a Redis server: each job is a key.
///
/// Cheap to share: put it in an [`Arc`].
pub struct KeyspaceQueue {
    pub(crate) store: Store,
    pub(crate) foreign_keys: ForeignKeys,
    pub(crate) finder: Finder,
    pub(crate) adoption: Adoption,
    pub(crate) freeing: Freeing,
    notifiers: Notifiers,
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
        let foreign_keys = config.foreign_keys;
        let (redis, owner) = config.owner(queue.clone());
        let opened = Conn::open_queue(owner, redis).await;
        let conn = opened.map_err(database::say_of_a_cluster)?;
        let opened = Self::on(conn, queue, foreign_keys).await?;
        database::check(&opened.store, foreign_keys).await?;
        Ok(opened)
    }

    async fn on(
        conn: Conn,
        queue: QueueName,
        foreign_keys: ForeignKeys,
    ) -> Result<Self, Error> {
        let store = Store::new(conn, queue);
        store.load_scripts().await?;
        Ok(Self {
            notifiers: Notifiers::new(&store),
            finder: Finder::new(),
            adoption: Adoption::new(),
            freeing: Freeing::new(),
            store,
            foreign_keys,
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
        let ids = self.store.bookkeeping.ids_for(jobs, token);
        if token.is_none() && jobs.iter().all(bookkeeping::is_plain) {
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
        bookkeeping::claim(self, ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        bookkeeping::settle(&self.store, done).await
    }

    /// The settlements and the picking of jobs share a round trip; the claim of what
    /// was picked is a second one.
    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        bookkeeping::settle_and_claim(self, done, ask).await
    }

    async fn extend(
        &self,
        _worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let (keys, names) = (&self.store.keys, held.iter().map(lease::key_of));
        self.store.bookkeeping.extend(&CAPABILITIES, &keys.leased, names, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let pattern = format!("*{}", lease::suffix(worker));
        let leases = self.find_leases(Operation::ReleaseWorker, &pattern).await?;
        let leases: Vec<_> = leases.into_iter().map(|(key, _)| key.into()).collect();
        let mut jobs = leases.len();
        let mut partial = PartialEffect::default();
        for page in leases.chunks(MAX_JOBS_PER_CALL.get() as usize) {
            jobs -= partial
                .then(self.store.give_back(Operation::ReleaseWorker, page).await)?
                .len();
        }
        Ok(Released { jobs: jobs as u64 })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_JOBS_PER_CALL).get();
        self.recover_page(page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.open_another().await?;
        Ok(Arc::new(Self::on(conn, self.name().clone(), self.foreign_keys).await?))
    }
}

#[async_trait]
impl WaitingPattern for KeyspaceQueue {
    async fn wait(&self, hint: WaitHint, limit: Duration) {
        if self.notifiers.wait(hint, limit).await == Woken::ByNotification {
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
            .bookkeeping
            .scan_matching(operation, "ZSCAN", &self.store.keys.leased, pattern)
            .await?;
        let parse = |(key, _)| Lease::parse(&key).map(|lease| (key, lease));
        Ok(leases.into_iter().filter_map(parse).collect())
    }
}
