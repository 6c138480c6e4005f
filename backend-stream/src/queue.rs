//! The worker's side.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    BatchQueue, Capabilities, Capability, ClaimRequest, Delivery, Error, Extended,
    LeaseScope, Limits, NewJob, Operation, Order, Priority, PushToken, Pushed,
    QueueName, Receipt, Recovered, RecoveryBound, Released, ReliableQueue, Settled,
    SettledAndClaimed, Settlement, WorkerId,
};
use relq_redis::{
    Conn, PartialEffect,
    bookkeeping::{
        self, Bookkeeping, ClaimPattern, ClaimRound, Failure, WaitHint, WaitingPattern,
    },
    entry,
};

use crate::{
    StreamConfig, batch,
    lease::{self, Lease, Token},
    scripts::{Claimed, Store},
    wait::{Notifiers, RECHECK},
};

/// Jobs of one call to a script: far below what Lua can unpack (about 8,000).
pub(crate) const MAX_JOBS_PER_CALL: NonZeroU32 =
    NonZeroU32::new(1000).expect("not zero");

/// The priority below the normal.
const PATIENT: Priority = match Priority::new(Priority::NORMAL.level() - 1) {
    Some(level) => level,
    None => Priority::NORMAL,
};

/// The one above.
const URGENT: Priority = match Priority::new(Priority::NORMAL.level() + 1) {
    Some(level) => level,
    None => Priority::NORMAL,
};

pub(crate) static CAPABILITIES: Capabilities = Capabilities {
    backend: "stream",
    supported: &[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::BlockingWait,
        Capability::Batches,
    ],
    priorities: PATIENT..=URGENT,
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

/// A queue on Redis: a stream of jobs, and a sorted set of leases.
///
/// Cheap to share: put it in an [`Arc`].
pub struct StreamQueue {
    pub(crate) store: Store,
    notifiers: Notifiers,
}

impl StreamQueue {
    /// Connects to the server and opens the queue of that name. Nothing is written.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a database that does not exist, or a queue of another backend.
    pub async fn connect(
        config: StreamConfig,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let (redis, owner) = config.owner(queue.clone());
        let conn = Conn::open_queue(owner, redis).await?;
        Self::on(conn, queue).await
    }

    async fn on(conn: Conn, queue: QueueName) -> Result<Self, Error> {
        let store = Store::new(conn, queue);
        store.load_scripts().await?;
        Ok(Self { notifiers: Notifiers::new(&store), store })
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.store.keys.queue
    }
}

#[async_trait]
impl ReliableQueue for StreamQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let plain =
            |entries: Vec<Vec<u8>>| async move { self.store.append(&entries).await };
        self.store.bookkeeping.store(&CAPABILITIES, jobs, token, plain).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        bookkeeping::claim(self, ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        // Read right behind the settlements, in the same round trip.
        let tell = async {
            if done.iter().any(|one| batch::is_piece(one.receipt.token())) {
                batch::forward(&self.store, Operation::Settle).await;
            }
        };
        let settling = bookkeeping::settle(&self.store, done);
        tokio::join!(biased; settling, tell).0
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
        CAPABILITIES.check_lease(Operation::Extend, lease)?;
        CAPABILITIES.check_batch(Operation::Extend, held.len())?;
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.store.extend(held, lease).await?.answers(held.len());
        // The last piece of a cancelled batch may have ended here.
        if answers.contains(&Extended::Cancelled) {
            batch::forward(&self.store, Operation::Extend).await;
        }
        Ok(answers)
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let pattern = format!("{worker}/*");
        let leases = self.find_leases(Operation::ReleaseWorker, &pattern).await?;
        let has_pieces = leases.iter().any(|(_, lease)| lease.token.is_piece());
        let leases: Vec<Vec<u8>> =
            leases.into_iter().map(|(member, _)| member.into()).collect();
        let mut jobs = leases.len();
        // Each job goes back to where it was in its stream, whichever comes first here.
        let mut partial = PartialEffect::default();
        for page in leases.chunks(MAX_JOBS_PER_CALL.get() as usize) {
            let lost =
                self.store.bookkeeping.give_back(Operation::ReleaseWorker, page).await;
            jobs -= partial.then(lost)?.len();
        }
        if has_pieces {
            batch::forward(&self.store, Operation::ReleaseWorker).await;
        }
        Ok(Released { jobs: jobs as u64 })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(MAX_JOBS_PER_CALL).get();
        let own = Box::pin(self.recover_own(page));
        self.store.bookkeeping.recover(page, own).await
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.open_another().await?;
        Ok(Arc::new(Self::on(conn, self.name().clone()).await?))
    }
}

#[async_trait]
impl ClaimPattern for StreamQueue {
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
        let goes_on = !claimed.leased.is_empty() || claimed.buried > 0;
        if goes_on {
            *partial = PartialEffect::Begun;
        }
        let deliveries = self.deliver(ask, claimed).await;
        let deliveries = deliveries.map_err(|error| partial.whole(error))?;
        let is_due = hint.is_due();
        Ok(ClaimRound { deliveries, hint, is_due, goes_on })
    }
}

#[async_trait]
impl WaitingPattern for StreamQueue {
    async fn wait(&self, hint: WaitHint, limit: Duration) {
        self.notifiers.wait(hint, limit).await;
    }
}

impl fmt::Display for StreamQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream queue {} at {}", self.name(), self.store.conn)
    }
}

impl fmt::Debug for StreamQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamQueue({self})")
    }
}

impl StreamQueue {
    /// Ended leases, what foreign consumers hold, and what is left to be done for batches.
    async fn recover_own(&self, page: u32) -> Result<Recovered, Error> {
        let (expired, adopted, tended) = tokio::join!(
            self.store.recover(page),
            self.store.adopt(page),
            self.store.tend(page),
        );
        let told = batch::forward_page(&self.store, page).await;
        let mut partial = PartialEffect::default();
        for done in [&expired, &adopted, &tended] {
            partial.add(done);
        }
        partial.add(&told);
        let whole = |error| partial.whole(error);
        let (expired, adopted) = (expired.map_err(whole)?, adopted.map_err(whole)?);
        let tended = tended.map_err(whole)?;
        let has_more_to_tell = told.map_err(whole)?;
        Ok(Recovered {
            requeued: expired.requeued + adopted.requeued,
            buried: expired.buried + adopted.buried,
            more: expired.more || adopted.more || tended.more || has_more_to_tell,
            ..expired
        })
    }

    /// Turns leased entries into deliveries. What has expired or cannot be read is
    /// leased by now, so it cannot be lost on its way to the dead letters (R3, R17).
    async fn deliver(
        &self,
        ask: &ClaimRequest,
        claimed: Claimed,
    ) -> Result<Vec<Delivery>, Error> {
        let mut deliveries = Vec::with_capacity(claimed.leased.len());
        let (mut failures, mut has_pieces) = (Vec::new(), false);
        for (token, element) in claimed.leased {
            match bookkeeping::read(&element, claimed.now) {
                Ok(mut entry) => {
                    entry.attempt = Token::parse(&token).map_or(1, |it| it.attempt);
                    deliveries.push(bookkeeping::delivery(entry, token, ask.lease));
                }
                Err(bookkeeping::Undeliverable { why, error }) => {
                    has_pieces |= batch::is_piece(&token);
                    let lease = lease::join(&token, &entry::id_of(&element));
                    failures.push(Failure { lease, after: None, why, error });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.store.bookkeeping.fail(Operation::Claim, &failures).await;
            if has_pieces {
                batch::forward(&self.store, Operation::Claim).await;
            }
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
