//! Implements the pattern: a stream of jobs with a consumer group, and a sorted set of
//! leases.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, QueueName, Receipt, Stats, WorkerId,
    batch::BatchQueue,
    capabilities::Capabilities,
    error::Operation,
    operator::{JobView, Page, PeekRequest},
    outcome::Recovered,
};
use relq_redis::{
    Cmd, Conn, PartialEffect, RedisQueue, Script,
    bookkeeping::{Beat, Bookkeeping, ClaimRound, Finish, Seen, Step},
    pattern::{CancelSearch, Notification, Pattern, WakeConditions, deliver},
};

use crate::{
    StreamConfig, Streams, audit, batch, cancel,
    capabilities::CAPABILITIES,
    lease::{self, Lease, Token},
    peek, scripts,
    scripts::Store,
    wait,
};

/// A queue on Redis: a stream of jobs, and a sorted set of leases.
///
/// Cheap to share: put it in an [`Arc`](std::sync::Arc).
pub type StreamQueue = RedisQueue<Streams>;

#[async_trait]
impl Pattern for Streams {
    type Config = StreamConfig;
    type ClaimState = ();

    const QUEUE: &'static str = "StreamQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, _config: &StreamConfig) -> Self {
        let store = Store::new(conn, queue);
        Self { store, failed_queues: Arc::default(), forwarders: Arc::default() }
    }

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn append(
        &self,
        _ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.store.append(&entries).await?;
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

    /// Whether the job that a token leases has side records, such as a unique key. A
    /// token that relq did not write belongs to no lease, so the result does not matter
    /// for it.
    fn has_side_records(token: &Bytes) -> bool {
        Token::parse(token).is_some_and(|token| token.has_side_records)
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Step, Error> {
        self.store.finish(receipts, finish).await
    }

    async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        self.store.finish_with_results(jobs).await
    }

    /// Extends the leases that a worker holds. If a leased piece belongs to a cancelled
    /// batch, its lease ends instead.
    async fn heartbeat(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Beat, Error> {
        self.store.extend(held, lease).await
    }

    /// Returns the leases of a worker, unsorted: each job goes back to its old position
    /// in its stream, so the order does not matter.
    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let (leased, glob) = (&self.store.keys.leased, format!("{worker}/*"));
        let operation = Operation::ReleaseWorker;
        let found =
            self.store.bookkeeping.find_leases(operation, leased, Lease::parse, &glob);
        let leases = found.await?;
        Ok(leases.into_iter().map(|(member, _)| member.into()).collect())
    }

    /// Recovers expired leases, takes back entries of foreign consumers, and continues
    /// unfinished work on batches.
    async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let (expired, adopted, tended) = tokio::join!(
            self.store.recover(page),
            self.store.adopt(page),
            self.store.tend(page),
        );
        let told = batch::forward_page(self, page).await;
        let mut parts = PartialEffect::default();
        for done in [&expired, &adopted, &tended] {
            parts.add(done);
        }
        parts.add(&told);
        let whole = |error| parts.whole(error);
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

    fn arrivals(&self, block: Duration) -> Option<Cmd> {
        Some(wait::arrivals(&self.store.keys, block))
    }

    async fn pass_on(&self, _unheard: Notification) -> Result<(), Error> {
        self.store.pass_on().await
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

    async fn leased_job(
        &self,
        operation: Operation,
        job: &JobId,
    ) -> Result<Option<JobView>, Error> {
        peek::leased_job(&self.store, operation, job).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.store.purge().await
    }

    async fn audit_jobs(&self, seen: &mut Seen) -> Result<(), Error> {
        audit::read(&self.store, seen).await
    }

    fn has_follow_up(lease: &[u8]) -> bool {
        batch::is_piece(lease)
    }

    /// Pushes completion jobs to other queues. This runs after each call that may have
    /// ended the last piece of a batch.
    async fn follow_up(&self, operation: Operation) {
        batch::forward(self, operation).await;
    }

    /// Pushes the completion jobs that a task of this client has not pushed yet.
    async fn finish_follow_ups(&self, operation: Operation) {
        batch::forward_the_rest(self, operation).await;
    }

    fn batch_queue(queue: &StreamQueue) -> Option<&dyn BatchQueue> {
        Some(queue)
    }
}
