//! The pattern of this backend: a list contains the ids of ready jobs, and a hash names
//! the worker that has claimed an id.

use std::{borrow::Cow, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, Priority, QueueName, Receipt, Stats, WorkerId,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    environment::Environment,
    error::Operation,
    operator::{JobState, Page, PeekRequest},
    outcome::Recovered,
};
use relq_redis::{
    Cmd, Conn, InvalidUrl, Owner, PartialEffect, RedisConfig, RedisQueue, Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, Step},
    pattern::{
        CancelSearch, Notification, Pattern, PatternConfig, WakeConditions,
        cancel_leased, deliver,
    },
};

use crate::{audit, lease, lease::Lease, peek, scripts, scripts::Store};

/// The options that this backend supports. It refuses push tokens, because a token that
/// is used again after the backend forgot it would give two jobs one id, and so one
/// body.
pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "claim-by-sadd",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::Delay,
        Capability::Unique,
        Capability::Expiry,
        Capability::Schedules,
    ]),
    priorities: Priority::NORMAL..=Priority::NORMAL,
    lateness: Duration::from_secs(1),
    order: Order::Fifo,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};

/// The configuration of a queue of this backend.
#[derive(Debug, Clone)]
pub struct BySaddConfig(RedisConfig);

impl BySaddConfig {
    /// Creates the configuration for the server at `url`. The environment gives the
    /// time and the randomness.
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str, environment: Environment) -> Result<Self, InvalidUrl> {
        Ok(Self(RedisConfig::new(url)?.environment(environment)))
    }
}

impl PatternConfig for BySaddConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        (self.0, Owner::new(CAPABILITIES.backend, queue))
    }
}

/// A queue on Redis that stores ids in a list, bodies in a hash, and the ids in process
/// in another hash.
pub type BySaddQueue = RedisQueue<BySadd>;

/// The backend itself, which stores the jobs of one queue.
#[derive(Debug)]
pub struct BySadd {
    store: Store,
}

#[async_trait]
impl Pattern for BySadd {
    type Config = BySaddConfig;
    type ClaimState = ();

    const QUEUE: &'static str = "BySaddQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, _config: &BySaddConfig) -> Self {
        Self { store: Store::new(conn, queue) }
    }

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    /// Stores nothing: the bookkeeping's push script stores the body and the id in one
    /// step.
    async fn append(&self, _: &[JobId], _: Vec<Vec<u8>>) -> Result<bool, Error> {
        Ok(false)
    }

    async fn try_claim(
        &self,
        ask: &ClaimRequest,
        _state: &mut (),
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error> {
        let claimed = self.store.claim(ask).await;
        deliver(self, ask, claimed, parts).await
    }

    fn lease(token: &Bytes, id: &[u8]) -> Vec<u8> {
        lease::join(token, id)
    }

    fn has_side_records(_token: &Bytes) -> bool {
        true
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
        let names = held
            .iter()
            .map(|one| lease::join(one.token(), one.job().as_str().as_bytes()));
        self.store.bookkeeping.beat(&self.store.keys.leased, names, lease).await
    }

    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let (leased, glob) = (&self.store.keys.leased, format!("{worker}/*"));
        let operation = Operation::ReleaseWorker;
        let found =
            self.store.bookkeeping.find_leases(operation, leased, Lease::parse, &glob);
        let mut leases = found.await?;
        leases.sort_unstable_by(|(_, a), (_, b)| a.order.cmp(&b.order));
        Ok(leases.into_iter().map(|(name, _)| name.into()).collect())
    }

    async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        self.store.recover(page).await
    }

    /// Returns `None`, because no command waits for a new job. A waiting claim looks
    /// once a second instead.
    fn arrivals(&self, _block: Duration) -> Option<Cmd> {
        None
    }

    async fn pass_on(&self, _unheard: Notification) -> Result<(), Error> {
        self.store.notify().await
    }

    async fn stats(&self) -> Result<Stats, Error> {
        self.store.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn cancel(&self, job: &JobId) -> Result<CancelSearch, Error> {
        if self.store.cancel_ready(job).await? {
            return Ok(CancelSearch::Removed(JobState::Ready));
        }
        cancel_leased(self, job, self.store.lease_of(job).await?).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.store.purge().await
    }

    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error> {
        audit::read(&self.store, seen).await
    }
}
