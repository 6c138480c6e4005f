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
use queue_core::{
    Capabilities, Capability, ClaimRequest, Delivery, Error, Extended, LeaseScope,
    Limits, NewJob, Operation, Order, Priority, PushToken, Pushed, QueueName, Receipt,
    Recovered, RecoveryBound, Released, ReliableQueue, Settled, Settlement, Turn,
    WorkerId,
};
use queue_redis::{
    Conn, Parts, entry,
    shelf::{self, Failure},
};

use crate::{
    CircularConfig,
    element::InProcess,
    scripts::{Claimed, Found, Recovery, Store, Turned},
    wait::{Bells, Outlook, RECHECK},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_BATCH: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// The upper of the two priorities: pushed at the end that is looked at first.
const URGENT: Priority =
    Priority::new(Priority::NORMAL.level() + 1).expect("there are levels above");

static CAPABILITIES: Capabilities = Capabilities {
    backend: "circular",
    claimed: &[
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
        max_batch: MAX_BATCH,
    },
};

/// A queue on Redis: one list that turns, and that jobs leave when they are done.
///
/// Cheap to share: put it in an [`Arc`].
pub struct CircularQueue {
    pub(crate) store: Store,
    bells: Bells,
    /// Elements, from the tail of the ring on, that recovery has looked at.
    recovered_up_to: AtomicU64,
}

impl CircularQueue {
    /// Connects to the server and opens the queue of that name. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0 or a database that does not exist.
    pub async fn connect(
        config: CircularConfig,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let conn = Conn::open(CAPABILITIES.backend, config.redis).await?;
        Self::on(Store::new(conn, queue, config.finish)).await
    }

    async fn on(store: Store) -> Result<Self, Error> {
        store.load_scripts().await?;
        let recovered_up_to = AtomicU64::new(0);
        Ok(Self { bells: Bells::new(&store), store, recovered_up_to })
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
        CAPABILITIES.check_push(jobs, token.is_some())?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let ids = self.store.shelf.ids_for(jobs, token);
        if token.is_some() || !jobs.iter().all(shelf::is_plain) {
            return self.store.shelf.push(jobs, ids, token).await;
        }
        let encode = |(job, id)| entry::encode(job, id);
        let entries: Vec<_> = jobs.iter().zip(&ids).map(encode).collect();
        self.store.push_plain(&entries).await?;
        Ok(ids.into_iter().map(Pushed::Stored).collect())
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        CAPABILITIES.check_claim(ask)?;
        let clock = self.store.conn.environment().clock();
        let deadline = clock.elapsed() + ask.wait;
        let mut parts = Parts::default();
        loop {
            let (deliveries, outlook) = self.claim_now(ask, &mut parts).await?;
            let left = deadline.saturating_sub(clock.elapsed());
            if !deliveries.is_empty() || left.is_zero() {
                return Ok(deliveries);
            }
            self.bells.wait(outlook, left).await;
        }
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        shelf::settle(&self.store, done).await
    }

    /// Both are written to the connection together, the settlements first, so they
    /// share a round trip. Only when the server forgot a script since it was loaded
    /// may the claim come first.
    async fn turn(&self, done: &[Settlement], ask: &ClaimRequest) -> Turn {
        let claim = async {
            CAPABILITIES.check_claim(ask)?;
            let claimed = self.claim_now(ask, &mut Parts::default()).await;
            claimed.map(|(deliveries, _)| deliveries)
        };
        let (settled, claimed) = tokio::join!(biased; self.settle(done), claim);
        Turn { settled, claimed }
    }

    async fn extend(
        &self,
        _worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        CAPABILITIES.check_lease(Operation::Extend, lease)?;
        CAPABILITIES.check_batch(Operation::Extend, held.len())?;
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let (until, lost, cancelled) = self.store.extend(held, lease).await?;
        let mut answers = vec![Extended::Until(until); held.len()];
        lost.into_iter().for_each(|at| answers[at] = Extended::LeaseLost);
        cancelled.into_iter().for_each(|at| answers[at] = Extended::Cancelled);
        Ok(answers)
    }

    /// The jobs stay where they are in the ring: their marks say that they may be
    /// taken over, uncounted.
    async fn leave(&self, worker: &WorkerId) -> Result<Released, Error> {
        let tokens = self.tokens_of(worker).await?;
        let (mut jobs, mut unseen) = (0, 0);
        let mut parts = Parts::default();
        for page in tokens.chunks(MAX_BATCH.get() as usize) {
            let left = self.store.leave(page).await;
            let (page_jobs, page_unseen) = parts.then(left)?;
            jobs += page_jobs;
            unseen += page_unseen;
        }
        if unseen > 0 {
            parts.then(self.see_to_the_left().await)?;
        }
        Ok(Released { jobs })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_BATCH).get();
        let (expired, due, forgot) = tokio::join!(
            self.recover_ring(page),
            self.store.shelf.promote(Operation::Recover, page),
            self.store.shelf.forget(page),
        );
        let mut parts = Parts::default();
        parts.add(&expired);
        parts.add(&due);
        parts.add(&forgot);
        let whole = |error| parts.whole(error);
        let (expired, due) = (expired.map_err(whole)?, due.map_err(whole)?);
        Ok(Recovered {
            promoted: due.promoted,
            more: expired.more || due.more || forgot.map_err(whole)?,
            next_in: expired.next_in.into_iter().chain(due.next_in).min(),
            ..expired
        })
    }

    async fn sibling(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.sibling().await?;
        let store = Store::new(conn, self.name().clone(), self.store.finish_by);
        Ok(Arc::new(Self::on(store).await?))
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
    /// Claims without waiting, promoting what is due on the way. Its errors speak for
    /// all of `parts`, to which it adds what it changes.
    async fn claim_now(
        &self,
        ask: &ClaimRequest,
        parts: &mut Parts,
    ) -> Result<(Vec<Delivery>, Outlook), Error> {
        let mut turned = Turned::default();
        loop {
            let max = ask.max.min(MAX_BATCH).get();
            let nonce = self.store.conn.environment().random().text(12);
            let claimed = self.store.claim(ask, max, &nonce).await;
            let claimed = claimed.map_err(|error| parts.whole(error))?;
            let outlook = Outlook::of(&claimed);
            let is_found = claimed.found == Found::Jobs;
            if is_found {
                *parts = Parts::Begun;
            }
            let goes_on =
                claimed.found == Found::More && turned.goes_on(claimed.turned);
            let deliveries = self.deliver(ask, claimed).await;
            let deliveries = deliveries.map_err(|error| parts.whole(error))?;
            if !deliveries.is_empty() {
                if outlook.is_due() {
                    self.promote_beside(max).await;
                }
                return Ok((deliveries, outlook));
            }
            if outlook.is_due() {
                let promoted = self.store.shelf.promote(Operation::Claim, max).await;
                parts.then(promoted)?;
            } else if !is_found && !goes_on {
                return Ok((deliveries, outlook));
            }
        }
    }

    /// Promotes while deliveries are on their way already. Should it fail, they are
    /// not to be lost for it: the next claim finds the same jobs due.
    async fn promote_beside(&self, page: u32) {
        if let Err(error) = self.store.shelf.promote(Operation::Claim, page).await {
            tracing::debug!(%error, "due jobs are left to the next claim");
        }
    }

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
            match shelf::read(&entry, claimed.since) {
                Ok(entry) => {
                    deliveries.push(shelf::delivery(entry, element, ask.lease));
                }
                Err(shelf::Undeliverable { why, error }) => {
                    let lease = element.to_vec();
                    failures.push(Failure { lease, after: None, why, error });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.store.shelf.fail(Operation::Claim, &failures).await;
            shelf::bury_beside(&deliveries, buried)?;
        }
        Ok(deliveries)
    }

    /// The tokens of all leases of a worker.
    async fn tokens_of(&self, worker: &WorkerId) -> Result<Vec<Bytes>, Error> {
        let (pattern, marks) = (format!("{worker}/*"), &self.store.keys.marks);
        let shelf = &self.store.shelf;
        let found =
            shelf.scan_matching(Operation::Leave, "ZSCAN", marks, &pattern).await?;
        let is_held = |mark: &Bytes| !mark.starts_with(b"-") && &mark[..] != b"0";
        let held = found.into_iter().filter(|(_, mark)| is_held(mark));
        Ok(held.map(|(token, _)| token).collect())
    }

    /// Sees at once to what a leaving worker let go of, and leaves it to no reaper.
    async fn see_to_the_left(&self) -> Result<(), Error> {
        let (page, mut passed) = (MAX_BATCH.get(), 0);
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
