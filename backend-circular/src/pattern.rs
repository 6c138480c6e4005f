//! The circular pattern: ready and leased jobs are elements of one list, which claims
//! rotate. A job leaves the list when it is done.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, QueueName, Receipt, Stats, WorkerId,
    capabilities::Capabilities,
    error::Operation,
    operator::{Page, PeekRequest},
    outcome::{Recovered, Released},
};
use relq_redis::{
    Cmd, Conn, PartialEffect, RedisQueue, Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, Step},
    pattern::{CancelSearch, Notification, Pattern, WakeConditions, deliver},
};

use crate::{
    CircularConfig, audit, cancel,
    capabilities::CAPABILITIES,
    lease, peek, scripts,
    scripts::{Recovery, Rotated, Store},
    wait,
};

/// A queue on Redis: one list that is rotated; a job leaves it when it is done.
///
/// Cheap to share: put it in an [`Arc`](std::sync::Arc).
pub type CircularQueue = RedisQueue<Circular>;

/// The circular pattern: how a queue of this backend stores its ready and leased jobs.
#[derive(Debug)]
pub struct Circular {
    pub(crate) store: Store,
    /// The number of elements, counted from the tail of the ring, that recovery has
    /// checked so far. The next recovery continues behind them.
    recovered_up_to: AtomicU64,
}

#[async_trait]
impl Pattern for Circular {
    type Config = CircularConfig;
    type ClaimState = Rotated;

    const QUEUE: &'static str = "CircularQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, config: &CircularConfig) -> Self {
        let store = Store::new(conn, queue, config.finish);
        Self { store, recovered_up_to: AtomicU64::new(0) }
    }

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn append(
        &self,
        _ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.store.push_plain(&entries).await?;
        Ok(true)
    }

    async fn try_claim(
        &self,
        ask: &ClaimRequest,
        rotated: &mut Rotated,
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error> {
        let claimed = self.store.claim(ask, rotated).await;
        deliver(self, ask, claimed, parts).await
    }

    /// Returns the token unchanged: it is the whole element, which the scripts take as
    /// the lease.
    fn lease(token: &Bytes, _id: &[u8]) -> Vec<u8> {
        token.to_vec()
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
        let tokens = held.iter().map(|held| lease::token(held).to_vec());
        self.store.bookkeeping.beat(&self.store.keys.marks, tokens, lease).await
    }

    /// Returns the lease tokens of a worker, unsorted. Their order does not matter,
    /// because released jobs stay where they are in the ring.
    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let (glob, marks) = (format!("{worker}/*"), &self.store.keys.marks);
        let if_held = |_: &Bytes, mark: &Bytes| {
            (!mark.starts_with(b"-") && &mark[..] != b"0").then_some(())
        };
        let operation = Operation::ReleaseWorker;
        let held =
            self.store.bookkeeping.find_members(operation, marks, &glob, if_held);
        Ok(held.await?.into_iter().map(|(token, ())| token.into()).collect())
    }

    /// Releases leases by changing their marks. The jobs stay where they are in the
    /// ring. Another worker may take them over, and the released attempt is not
    /// counted.
    async fn release(&self, leases: Vec<Vec<u8>>) -> Result<Released, Error> {
        let (mut jobs, mut unseen) = (0, 0);
        let mut parts = PartialEffect::default();
        let most = self.store.bookkeeping.max_jobs_per_slow_step().get() as usize;
        for page in leases.chunks(most) {
            let left = self.store.release_worker(page).await;
            let (page_jobs, page_unseen) = parts.then(left)?;
            jobs += page_jobs;
            unseen += page_unseen;
        }
        if unseen > 0 {
            parts.then(self.recover_released().await)?;
        }
        Ok(Released { jobs })
    }

    /// Recovers one page of expired leases, starting at the position in the ring where
    /// the last recovery stopped.
    async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let passed = self.recovered_up_to.load(Ordering::Relaxed);
        let (recovered, passed) =
            self.store.recover(Recovery::All, page, passed).await?;
        self.recovered_up_to.store(passed, Ordering::Relaxed);
        Ok(recovered)
    }

    fn arrivals(&self, block: Duration) -> Option<Cmd> {
        Some(wait::arrivals(&self.store.keys, block))
    }

    fn count_sources(&self) -> Option<Cmd> {
        Some(wait::count_sources(&self.store.keys))
    }

    async fn pass_on(&self, unheard: Notification) -> Result<(), Error> {
        match unheard {
            // An arrival need not be passed on. The blocking command that reports it
            // removes nothing from the list, so every waiting worker was woken.
            Notification::Arrival => Ok(()),
            Notification::Signal => self.store.pass_on().await,
        }
    }

    async fn stats(&self) -> Result<Stats, Error> {
        self.store.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn cancel(&self, job: &JobId) -> Result<CancelSearch, Error> {
        cancel::cancel(&self.store, job).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.store.purge().await
    }

    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error> {
        audit::read(&self.store, seen).await
    }
}

impl Circular {
    /// Recovers the jobs of released workers that hold a unique key, so that the key is
    /// free now and not only when a reaper runs.
    async fn recover_released(&self) -> Result<(), Error> {
        let mut passed = 0;
        let page = self.store.bookkeeping.max_jobs_per_slow_step().get();
        loop {
            let left = self.store.recover(Recovery::Left, page, passed).await?;
            passed = left.1;
            if !left.0.more {
                return Ok(());
            }
        }
    }
}
