//! The worker's side.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

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
    bookkeeping::{
        self, Bookkeeping, ClaimPattern, ClaimRound, Failure, WaitingPattern,
    },
};

use crate::{
    CircularConfig,
    element::InProcess,
    lease,
    scripts::{Claimed, Found, Recovery, Rotated, Store},
    wait::{Notifiers, RECHECK, WaitHint},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_JOBS_PER_CALL: NonZeroU32 =
    NonZeroU32::new(1000).expect("not zero");

/// The upper of the two priorities: pushed at the end that is looked at first.
const URGENT: Priority =
    Priority::new(Priority::NORMAL.level() + 1).expect("there are levels above");

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "circular",
    supported: &[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::BlockingWait,
    ],
    priorities: Priority::NORMAL..=URGENT,
    lateness: RECHECK,
    order: Order::Rotating,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::OneTurn,
    limits: Limits {
        max_payload: 16 * 1024 * 1024,
        max_headers: 64 * 1024,
        max_jobs_per_call: MAX_JOBS_PER_CALL,
    },
};

/// A queue on Redis: one list that turns, and that jobs leave when they are done.
///
/// Cheap to share: put it in an [`Arc`].
pub struct CircularQueue {
    pub(crate) store: Store,
    notifiers: Notifiers,
    /// Elements, from the tail of the ring on, that recovery has looked at.
    recovered_up_to: AtomicU64,
}

impl CircularQueue {
    /// Connects to the server and opens the queue of that name. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a database that does not exist, or a queue of another backend.
    pub async fn connect(
        config: CircularConfig,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let finish_by = config.finish;
        let (redis, owner) = config.owner(queue.clone());
        let conn = Conn::open_queue(owner, redis).await?;
        Self::on(Store::new(conn, queue, finish_by)).await
    }

    async fn on(store: Store) -> Result<Self, Error> {
        store.load_scripts().await?;
        let recovered_up_to = AtomicU64::new(0);
        Ok(Self { notifiers: Notifiers::new(&store), store, recovered_up_to })
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.store.keys.queue
    }
}

#[async_trait]
impl ReliableQueue for CircularQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let plain = async |entries: Vec<_>| self.store.push_plain(&entries).await;
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
        let (keys, names) =
            (&self.store.keys, held.iter().map(|held| lease::token(held).to_vec()));
        self.store.bookkeeping.extend(&CAPABILITIES, &keys.marks, names, lease).await
    }

    /// The jobs stay where they are in the ring: their marks say that they may be
    /// taken over, uncounted.
    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let tokens = self.tokens_of(worker).await?;
        let (mut jobs, mut unseen) = (0, 0);
        let mut partial = PartialEffect::default();
        for page in tokens.chunks(MAX_JOBS_PER_CALL.get() as usize) {
            let left = self.store.release_worker(page).await;
            let (page_jobs, page_unseen) = partial.then(left)?;
            jobs += page_jobs;
            unseen += page_unseen;
        }
        if unseen > 0 {
            partial.then(self.see_to_the_left().await)?;
        }
        Ok(Released { jobs })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_JOBS_PER_CALL).get();
        self.store.bookkeeping.recover(page, self.recover_ring(page)).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.open_another().await?;
        let store = Store::new(conn, self.name().clone(), self.store.finish_by);
        Ok(Arc::new(Self::on(store).await?))
    }
}

#[async_trait]
impl ClaimPattern for CircularQueue {
    type WaitHint = WaitHint;
    type ClaimState = Rotated;

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn look(
        &self,
        ask: &ClaimRequest,
        rotated: &mut Rotated,
        partial: &mut PartialEffect,
    ) -> Result<ClaimRound<WaitHint>, Error> {
        let max = ask.max.min(MAX_JOBS_PER_CALL).get();
        let nonce = self.store.conn.environment().random().text(12);
        let claimed = self.store.claim(ask, max, &nonce).await;
        let claimed = claimed.map_err(|error| partial.whole(error))?;
        let hint = WaitHint::of(&claimed);
        let is_found = claimed.found == Found::Jobs;
        if is_found {
            *partial = PartialEffect::Begun;
        }
        let rotates_on =
            claimed.found == Found::More && rotated.goes_on(claimed.rotated);
        let deliveries = self.deliver(ask, claimed).await;
        let deliveries = deliveries.map_err(|error| partial.whole(error))?;
        let (is_due, goes_on) = (hint.is_due(), is_found || rotates_on);
        Ok(ClaimRound { deliveries, hint, is_due, goes_on })
    }
}

#[async_trait]
impl WaitingPattern for CircularQueue {
    async fn wait(&self, hint: WaitHint, limit: Duration) {
        self.notifiers.wait(hint, limit).await;
    }
}

impl fmt::Display for CircularQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "circular queue {} at {}", self.name(), self.store.conn)
    }
}

impl fmt::Debug for CircularQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CircularQueue({self})")
    }
}

impl CircularQueue {
    /// Turns leased elements into deliveries. What has expired or cannot be read is
    /// leased by now, so it cannot be lost on its way to the dead letters (R3, R17).
    async fn deliver(
        &self,
        ask: &ClaimRequest,
        claimed: Claimed,
    ) -> Result<Vec<Delivery>, Error> {
        let mut deliveries = Vec::with_capacity(claimed.elements.len());
        let mut failures = Vec::new();
        for element in claimed.elements {
            let entry =
                InProcess::read(&element).map_or_else(Bytes::new, |it| it.entry);
            match bookkeeping::read(&entry, claimed.since) {
                Ok(entry) => {
                    deliveries.push(bookkeeping::delivery(entry, element, ask.lease));
                }
                Err(bookkeeping::Undeliverable { why, error }) => {
                    let lease = element.to_vec();
                    failures.push(Failure { lease, after: None, why, error });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.store.bookkeeping.fail(Operation::Claim, &failures).await;
            bookkeeping::bury_beside(&deliveries, buried)?;
        }
        Ok(deliveries)
    }

    /// The tokens of all leases of a worker.
    async fn tokens_of(&self, worker: &WorkerId) -> Result<Vec<Bytes>, Error> {
        let (pattern, marks) = (format!("{worker}/*"), &self.store.keys.marks);
        let bookkeeping = &self.store.bookkeeping;
        let found = bookkeeping
            .scan_matching(Operation::ReleaseWorker, "ZSCAN", marks, &pattern)
            .await?;
        let is_held = |mark: &Bytes| !mark.starts_with(b"-") && &mark[..] != b"0";
        let held = found.into_iter().filter(|(_, mark)| is_held(mark));
        Ok(held.map(|(token, _)| token).collect())
    }

    /// Sees at once to what a leaving worker let go of, and leaves it to no reaper.
    async fn see_to_the_left(&self) -> Result<(), Error> {
        let (page, mut passed) = (MAX_JOBS_PER_CALL.get(), 0);
        loop {
            let left = self.store.recover(Recovery::Left, page, passed).await?;
            passed = left.1;
            if !left.0.more {
                return Ok(());
            }
        }
    }

    /// A page of recovery of what is in process, from where the last one stopped.
    async fn recover_ring(&self, page: u32) -> Result<Recovered, Error> {
        let passed = self.recovered_up_to.load(Ordering::Relaxed);
        let (recovered, passed) =
            self.store.recover(Recovery::All, page, passed).await?;
        self.recovered_up_to.store(passed, Ordering::Relaxed);
        Ok(recovered)
    }
}
