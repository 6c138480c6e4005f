//! The worker's side.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    Capabilities, Capability, ClaimRequest, Delivery, Error, Extended, LeaseScope,
    Limits, NewJob, Operation, Order, Priority, PushToken, Pushed, QueueName, Receipt,
    Recovered, RecoveryBound, Released, ReliableQueue, Settled, SettledAndClaimed,
    Settlement, Timestamp, WorkerId,
};
use relq_redis::{
    Conn, PartialEffect, PushBatcher,
    bookkeeping::{
        self, Bookkeeping, ClaimPattern, ClaimRound, Failure, WaitHint, WaitingPattern,
    },
};

use crate::{
    ZsetConfig,
    lease::{self, Claim, Lease},
    scripts::{Claimed, Store},
    wait::{Notifiers, RECHECK},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_JOBS_PER_CALL: NonZeroU32 =
    NonZeroU32::new(1000).expect("not zero");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "zset",
    supported: &[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::BlockingWait,
    ],
    priorities: Priority::LOWEST..=Priority::HIGHEST,
    lateness: RECHECK,
    order: Order::Fifo,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits {
        max_payload: 16 * 1024 * 1024,
        max_headers: 64 * 1024,
        max_jobs_per_call: MAX_JOBS_PER_CALL,
    },
};

/// A queue on Redis: a list of ready jobs and a sorted set of leased ones.
///
/// Cheap to share: put it in an [`Arc`].
pub struct ZsetQueue {
    pub(crate) store: Store,
    notifiers: Notifiers,
    pushes: PushBatcher,
}

impl ZsetQueue {
    /// Connects to the server and opens the queue of that name. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a database that does not exist, or a queue of another backend.
    pub async fn connect(config: ZsetConfig, queue: QueueName) -> Result<Self, Error> {
        let (redis, owner) = config.owner(queue.clone());
        let conn = Conn::open_queue(owner, redis).await?;
        Self::on(conn, queue).await
    }

    async fn on(conn: Conn, queue: QueueName) -> Result<Self, Error> {
        let store = Store::new(conn, queue);
        store.load_scripts().await?;
        let pushes = PushBatcher::new(store.conn.clone(), store.keys.ready.clone());
        Ok(Self { notifiers: Notifiers::new(&store), store, pushes })
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.store.keys.queue
    }
}

#[async_trait]
impl ReliableQueue for ZsetQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let plain = |entries| self.pushes.push(entries);
        self.store.bookkeeping.store(&CAPABILITIES, jobs, token, plain).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        bookkeeping::claim(self, ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        bookkeeping::settle(&self.store, done).await
    }

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
        let (keys, names) = (&self.store.keys, held.iter().map(lease::member));
        self.store.bookkeeping.extend(&CAPABILITIES, &keys.leased, names, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let pattern = format!("{worker}/*");
        let mut leases = self.find_leases(Operation::ReleaseWorker, &pattern).await?;
        leases.sort_unstable_by(|(_, a), (_, b)| a.order.cmp(&b.order));
        let leases: Vec<_> =
            leases.into_iter().map(|(member, _)| member.into()).collect();
        let mut jobs = leases.len();
        // The last page first, so that the job held longest is foremost in the end. Which
        // of two claims in one microsecond came first is not kept: no server runs two
        // scripts in one.
        let mut partial = PartialEffect::default();
        for page in leases.rchunks(MAX_JOBS_PER_CALL.get() as usize) {
            let lost =
                self.store.bookkeeping.give_back(Operation::ReleaseWorker, page).await;
            jobs -= partial.then(lost)?.len();
        }
        Ok(Released { jobs: jobs as u64 })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_JOBS_PER_CALL).get();
        self.store.bookkeeping.recover(page, self.store.recover(page)).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.open_another().await?;
        Ok(Arc::new(Self::on(conn, self.name().clone()).await?))
    }
}

#[async_trait]
impl ClaimPattern for ZsetQueue {
    type WaitHint = WaitHint;
    type ClaimState = ();

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn look(
        &self,
        ask: &ClaimRequest,
        _course: &mut (),
        partial: &mut PartialEffect,
    ) -> Result<ClaimRound<WaitHint>, Error> {
        let max = ask.max.min(MAX_JOBS_PER_CALL).get();
        let nonce = self.store.conn.environment().random().text(12);
        let claimed = self.store.claim(ask, max, &nonce).await;
        let claimed = claimed.map_err(|error| partial.whole(error))?;
        let hint = WaitHint { is_paused: claimed.is_paused, due_in: claimed.due_in };
        let goes_on = !claimed.entries.is_empty();
        if goes_on {
            *partial = PartialEffect::Begun;
        }
        let deliveries = self.deliver(ask, &nonce, claimed).await;
        let deliveries = deliveries.map_err(|error| partial.whole(error))?;
        let is_due = hint.is_due();
        Ok(ClaimRound { deliveries, hint, is_due, goes_on })
    }
}

#[async_trait]
impl WaitingPattern for ZsetQueue {
    async fn wait(&self, hint: WaitHint, limit: Duration) {
        self.notifiers.wait(hint, limit).await;
    }
}

impl fmt::Display for ZsetQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "zset queue {} at {}", self.name(), self.store.conn)
    }
}

impl fmt::Debug for ZsetQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ZsetQueue({self})")
    }
}

impl ZsetQueue {
    /// Turns leased entries into deliveries. What has expired or cannot be read is
    /// leased by now, so it cannot be lost on its way to the dead letters (R3, R17).
    async fn deliver(
        &self,
        ask: &ClaimRequest,
        nonce: &str,
        claimed: Claimed,
    ) -> Result<Vec<Delivery>, Error> {
        let since_us: u64 = claimed.since_us.parse().unwrap_or(u64::MAX);
        let now = Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us));
        let claim = Claim { worker: &ask.worker, since_us: &claimed.since_us, nonce };
        let mut deliveries = Vec::with_capacity(claimed.entries.len());
        let mut failures = Vec::new();
        for (at, element) in claimed.entries.iter().enumerate() {
            let token = claim.token(at, element);
            match bookkeeping::read(element, now) {
                Ok(mut entry) => {
                    entry.attempt = entry.attempt.saturating_add(1);
                    deliveries.push(bookkeeping::delivery(entry, token, ask.lease));
                }
                Err(bookkeeping::Undeliverable { why, error }) => {
                    failures.push(Failure {
                        lease: lease::member_of_unreadable(&token, element),
                        after: None,
                        why,
                        error,
                    });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.store.bookkeeping.fail(Operation::Claim, &failures).await;
            bookkeeping::bury_beside(&deliveries, buried)?;
        }
        Ok(deliveries)
    }

    /// All leases whose name matches a glob pattern.
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
        let parse = |(member, _)| Lease::parse(&member).map(|lease| (member, lease));
        Ok(leases.into_iter().filter_map(parse).collect())
    }
}
