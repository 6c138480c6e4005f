//! The queue's type, and its methods for producers, workers and reapers.

use std::{
    borrow::Cow,
    collections::BTreeMap,
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
use futures_util::future::join_all;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, QueueName, Receipt,
    ReliableQueue, Settlement, WorkerId,
    capabilities::Capabilities,
    error::Operation,
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    schedule::ScheduleQueue,
};
use relq_redis::{
    Conn, PartialEffect, PushBatcher, Reply,
    bookkeeping::{self, Bookkeeping, Stores},
    command,
    pattern::PatternConfig,
};

use crate::{
    Mode, ProcessingListConfig,
    capabilities::{OF_PER_WORKER, OF_SHARED},
    lease::Lease,
    scripts::{How, Store, TakeBackReason, scripts},
    session::{Nonce, Session, Site},
    wait::{self, WaitingPattern},
};

/// The COUNT of the SCAN with which each recovery looks for lists whose session is not
/// registered: about how many keys of the server it reads.
const SCANNED: u32 = 500;

/// A queue on Redis whose claims move jobs into processing lists.
///
/// Put it in an [`Arc`] to share it between tasks.
pub struct ProcessingListQueue {
    pub(crate) store: Store,
    pub(crate) mode: Mode,
    pub(crate) nonce: Nonce,
    pub(crate) waits: WaitingPattern,
    pushes: PushBatcher,
    /// The cursor of the SCAN for lists whose session is not registered.
    scan: AtomicU64,
}

impl ProcessingListQueue {
    /// Connects to the server and opens the queue of that name. Writes nothing to the
    /// server.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a database that does not exist, or a queue of another backend.
    pub async fn connect(
        config: ProcessingListConfig,
        queue: QueueName,
    ) -> Result<Self, Error> {
        let mode = config.mode;
        let (redis, owner) = config.owner(queue.clone());
        let conn = Conn::open_queue(owner, redis, scripts(mode)).await?;
        let nonce = Nonce::random(conn.environment().random());
        Ok(Self::on(conn, queue, mode, nonce))
    }

    fn on(conn: Conn, queue: QueueName, mode: Mode, nonce: Nonce) -> Self {
        let store = Store::new(conn, queue);
        let pushes = PushBatcher::new(&store.conn, store.keys.ready.clone());
        let (waits, scan) = (WaitingPattern::new(&store), AtomicU64::new(0));
        Self { store, mode, nonce, waits, pushes, scan }
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.store.keys.queue
    }
}

#[async_trait]
impl ReliableQueue for ProcessingListQueue {
    fn capabilities(&self) -> &Capabilities {
        match self.mode {
            Mode::PerWorker => &OF_PER_WORKER,
            Mode::Shared => &OF_SHARED,
        }
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        bookkeeping::push(self, jobs, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.capabilities().check_claim(ask)?;
        let clock = self.store.conn.environment().clock();
        let deadline = clock.elapsed() + ask.wait;
        let (mut partial, mut moving) = (PartialEffect::default(), None);
        let mut was_paused = false;
        loop {
            let mut how = if ask.wait.is_zero() { How::Now } else { How::Waiting };
            let claimed =
                bookkeeping::claim_now(self, ask, &mut how, &mut partial).await?;
            let (deliveries, hint) = claimed;
            // A resume stores only one signal, and no claim has a blocking move during
            // a pause. So the claim that took the signal stores another for the next.
            if was_paused && !hint.is_paused {
                wait::wake_another(&self.store).await;
            }
            was_paused = hint.is_paused;
            if ask.wait.is_zero() && self.waits.last.keep(hint, hint.is_paused) {
                wait::wake_another(&self.store).await;
            }
            let left = deadline.saturating_sub(clock.elapsed());
            if !deliveries.is_empty() || left.is_zero() {
                return self.stop_waiting(ask, moving, deliveries, &mut partial).await;
            }
            let asked = self.asked(ask, How::Moved);
            let moved = self.waits.wait(&mut moving, &asked, hint, left).await;
            if let Some(claimed) = moved {
                let deliveries = self.deliver(ask, claimed, &mut partial).await?;
                if !deliveries.is_empty() {
                    return Ok(deliveries);
                }
            }
        }
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.waits.wait_for_jobs(limit).await;
        Ok(())
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.capabilities().check_batch(Operation::Settle, done.len())?;
        self.capabilities().check_settlements(done)?;
        bookkeeping::settle(&self.store, done).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        bookkeeping::settle_and_claim(self, done, ask).await
    }

    /// With a list per worker, a worker without leases is kept registered, too.
    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.capabilities().check_lease(Operation::Extend, lease)?;
        self.capabilities().check_batch(Operation::Extend, held.len())?;
        let mut by_site = BTreeMap::<_, Vec<_>>::new();
        if self.mode == Mode::PerWorker {
            by_site.insert(Site::Own(Session::own(worker, &self.nonce)), Vec::new());
        }
        for (at, receipt) in held.iter().enumerate() {
            if let Some(lease) = Lease::of(receipt) {
                by_site.entry(lease.site).or_default().push((at, lease.name));
            }
        }
        let calls =
            by_site.into_iter().map(|(site, named)| self.beat(site, named, lease));
        let answers = join_all(calls).await;
        let partial = PartialEffect::of(&answers);
        let mut extended = vec![Extended::LeaseLost; held.len()];
        for answer in answers {
            for (at, one) in answer.map_err(|error| partial.whole(error))? {
                extended[at] = one;
            }
        }
        Ok(extended)
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        // A blocking move that is not cancelled yet would take the jobs that this
        // method gives back.
        self.waits.movers.all_ended().await;
        let (leases, sessions) = tokio::try_join!(
            self.store.leases_of(worker),
            self.store.sessions_of(worker),
        )?;
        let (mut released, mut partial) =
            (Released::default(), PartialEffect::default());
        // Take back the last page first, so that the job that was held longest is at the
        // front at the end.
        let most = self.store.bookkeeping.max_jobs_per_slow_step().get() as usize;
        for page in leases.rchunks(most) {
            let taken =
                self.store.take_leases(TakeBackReason::WorkerReleased, page).await;
            released.jobs += u64::from(partial.then(taken)?.requeued);
        }
        let most = self.store.bookkeeping.max_jobs_per_slow_step().get();
        let mut has_more = !sessions.is_empty();
        while has_more {
            let page =
                self.store.take_back(TakeBackReason::WorkerReleased, &sessions, most);
            let page = partial.then(page.await)?;
            released.jobs += u64::from(page.requeued);
            has_more = page.more;
        }
        Ok(released)
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let page = page.min(self.store.bookkeeping.max_jobs_per_slow_step()).get();
        self.store.bookkeeping.recover(page, self.recover_expired(page)).await
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        Some(self)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.store.conn.open_another().await?;
        let (queue, nonce) = (self.name().clone(), self.nonce.clone());
        Ok(Arc::new(Self::on(conn, queue, self.mode, nonce)))
    }
}

#[async_trait]
impl Stores for ProcessingListQueue {
    fn bookkeeping_for(&self, _ids: &[JobId]) -> Cow<'_, Bookkeeping> {
        Cow::Borrowed(&self.store.bookkeeping)
    }

    async fn append(
        &self,
        _ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.pushes.push(entries).await?;
        Ok(true)
    }
}

impl fmt::Display for ProcessingListQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "processing-list queue {} at {}", self.name(), self.store.conn)
    }
}

impl fmt::Debug for ProcessingListQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessingListQueue({self})")
    }
}

impl ProcessingListQueue {
    /// Sends one heartbeat for the leases of one list. `named` has each lease's name
    /// and its position in the call. Returns the result for each position.
    async fn beat(
        &self,
        site: Site,
        named: Vec<(usize, Bytes)>,
        lease: Duration,
    ) -> Result<Vec<(usize, Extended)>, Error> {
        let (positions, names): (Vec<_>, Vec<_>) = named.into_iter().unzip();
        let beat = match &site {
            Site::Own(session) => self.store.beat(session, &names, lease).await?,
            Site::Shared => {
                let (leased, names) = (&self.store.keys.leased, names.iter());
                let names = names.map(|name| &name[..]);
                self.store.bookkeeping.beat(leased, names, lease).await?
            }
        };
        let answers = beat.answers(names.len());
        Ok(positions.into_iter().zip(answers).collect())
    }

    /// Takes back a page of expired jobs: those whose own lease has expired while their
    /// session runs, then those in lists of sessions that have ended.
    async fn recover_expired(&self, page: u32) -> Result<Recovered, Error> {
        let (leases, sessions) = self.suspects(page).await?;
        let mut partial = PartialEffect::default();
        let named = partial.then(
            self.store.take_leases(TakeBackReason::LeaseExpired, &leases).await,
        )?;
        let left = page.saturating_sub(named.requeued + named.buried);
        let rest =
            self.store.take_back(TakeBackReason::LeaseExpired, &sessions, left).await;
        let rest = partial.then(rest)?;
        Ok(Recovered {
            requeued: named.requeued + rest.requeued,
            buried: named.buried + rest.buried,
            ..rest
        })
    }

    /// The leases and sessions that may need recovery, with a page of lists whose
    /// session may not be registered.
    async fn suspects(&self, page: u32) -> Result<(Vec<Lease>, Vec<Session>), Error> {
        let ((leases, mut sessions), found) =
            tokio::try_join!(self.store.suspects(page), self.scan_lists())?;
        for session in found {
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        Ok((leases, sessions))
    }

    /// Runs the next page of the SCAN for workers' own lists. Returns the sessions that
    /// own them, registered or not.
    async fn scan_lists(&self) -> Result<Vec<Session>, Error> {
        let keys = &self.store.keys;
        let mut cmd = command("SCAN");
        cmd.arg(self.scan.load(Ordering::Relaxed));
        cmd.arg("MATCH").arg(keys.every_own_list()).arg("COUNT").arg(SCANNED);
        let mut reply = self.store.conn.call(Operation::Recover, &cmd).await?.list()?;
        let (Some(found), Some(next)) = (reply.pop(), reply.pop()) else {
            return Ok(Vec::new());
        };
        self.scan.store(next.text()?.parse().unwrap_or(0), Ordering::Relaxed);
        let lists = found.list()?.into_iter().map(Reply::bytes);
        let lists = lists.collect::<Result<Vec<_>, _>>()?;
        Ok(lists.iter().filter_map(|list| keys.session_of(list)).collect())
    }
}
