//! The pattern of this backend: a list contains the ready jobs, and for each minute a
//! set contains the leases that the reaper checks in that minute.

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
    operator::{Page, PeekRequest},
    outcome::Recovered,
};
use relq_redis::{
    Cmd, Conn, InvalidUrl, Owner, PartialEffect, PushBatcher, RedisConfig, RedisQueue,
    Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, Step},
    pattern::{
        CancelSearch, Notification, Pattern, PatternConfig, WakeConditions, deliver,
    },
};

use crate::{audit, cancel, lease, lease::Lease, peek, scripts, scripts::Store};

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "timer-buckets",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
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
pub struct TimerBucketsConfig(RedisConfig);

impl TimerBucketsConfig {
    /// Creates the configuration for the server at `url`. The environment gives the
    /// time and the randomness.
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str, environment: Environment) -> Result<Self, InvalidUrl> {
        Ok(Self(RedisConfig::new(url)?.environment(environment)))
    }
}

impl PatternConfig for TimerBucketsConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        (self.0, Owner::new(CAPABILITIES.backend, queue))
    }
}

/// A queue on Redis that stores ready jobs in a list, and for each minute a set of
/// leases that the reaper checks in that minute.
pub type TimerBucketsQueue = RedisQueue<TimerBuckets>;

/// The backend itself, which stores the jobs of one queue.
#[derive(Debug)]
pub struct TimerBuckets {
    pub(crate) store: Store,
    pushes: PushBatcher,
}

#[async_trait]
impl Pattern for TimerBuckets {
    type Config = TimerBucketsConfig;
    type ClaimState = ();

    const QUEUE: &'static str = "TimerBucketsQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, _config: &TimerBucketsConfig) -> Self {
        let store = Store::new(conn, queue);
        let pushes = PushBatcher::new(&store.conn, store.keys.ready.clone());
        Self { store, pushes }
    }

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn append(
        &self,
        _ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.pushes.push(entries).await?;
        Ok(true)
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
        self.store.extend(held, lease).await
    }

    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let leases = self.store.leases(Operation::ReleaseWorker).await?.into_iter();
        let named = leases.filter_map(|(_, name)| Some((Lease::parse(&name)?, name)));
        let mut of_worker: Vec<_> =
            named.filter(|(lease, _)| lease.worker == *worker).collect();
        of_worker.sort_unstable_by(|(a, _), (b, _)| a.order.cmp(&b.order));
        Ok(of_worker.into_iter().map(|(_, name)| name.into()).collect())
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
        cancel::cancel(self, job).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.store.purge().await
    }

    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error> {
        audit::read(&self.store, seen).await
    }
}
