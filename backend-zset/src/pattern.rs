//! The pattern: a list of ready jobs and a sorted set of leased ones.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, QueueName, Receipt, Stats, WorkerId,
    capabilities::Capabilities,
    error::Operation,
    operator::{JobView, Page, PeekRequest},
    outcome::Recovered,
};
use relq_redis::{
    Cmd, Conn, PartialEffect, PushBatcher, RedisQueue, Script,
    bookkeeping::{
        Beat, Bookkeeping, ClaimRound, Finish, FinishedAndClaimed, Seen, Step,
    },
    pattern::{CancelSearch, Notification, Pattern, WakeConditions, deliver},
};

use crate::{
    Zset, ZsetConfig, audit, cancel, capabilities::CAPABILITIES, lease, lease::Lease,
    peek, scripts, scripts::Store, wait,
};

/// A queue on Redis: a list of ready jobs and a sorted set of leased ones.
///
/// Cheap to share: put it in an [`Arc`](std::sync::Arc).
pub type ZsetQueue = RedisQueue<Zset>;

#[async_trait]
impl Pattern for Zset {
    type Config = ZsetConfig;
    type ClaimState = ();

    const QUEUE: &'static str = "ZsetQueue";

    fn capabilities() -> &'static Capabilities {
        &CAPABILITIES
    }

    fn scripts() -> Vec<&'static Script> {
        scripts::all_scripts().collect()
    }

    fn new(conn: Conn, queue: QueueName, _config: &ZsetConfig) -> Self {
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

    async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        self.store.finish_with_results(jobs).await
    }

    async fn finish_and_claim(
        &self,
        receipts: &[&Receipt],
        ask: &ClaimRequest,
        parts: &mut PartialEffect,
    ) -> Option<FinishedAndClaimed<WakeConditions>> {
        let (finished, claimed) = self.store.finish_and_claim(receipts, ask).await;
        // The server refused the whole script, for example because a key that only the
        // claim needs has another type. The jobs may still be finished.
        if let Err(Error::Unusable { .. } | Error::Denied { .. }) = finished {
            return None;
        }
        let claimed = deliver(self, ask, claimed, parts).await;
        Some(FinishedAndClaimed { finished, claimed })
    }

    async fn heartbeat(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Beat, Error> {
        let members = held.iter().map(lease::member);
        self.store.bookkeeping.beat(&self.store.keys.leased, members, lease).await
    }

    async fn leases_of(&self, worker: &WorkerId) -> Result<Vec<Vec<u8>>, Error> {
        let (leased, glob) = (&self.store.keys.leased, format!("{worker}/*"));
        let operation = Operation::ReleaseWorker;
        let found =
            self.store.bookkeeping.find_leases(operation, leased, Lease::parse, &glob);
        let mut leases = found.await?;
        // The order of two claims in the same microsecond is not recorded. It does not
        // matter: no server runs two scripts within one microsecond.
        leases.sort_unstable_by(|(_, a), (_, b)| a.order.cmp(&b.order));
        Ok(leases.into_iter().map(|(member, _)| member.into()).collect())
    }

    async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        self.store.recover(page).await
    }

    fn arrivals(&self, block: Duration) -> Option<Cmd> {
        Some(wait::arrivals(&self.store.keys, block))
    }

    fn count_sources(&self) -> Option<Cmd> {
        Some(wait::count_sources(&self.store.keys))
    }

    async fn pass_on(&self, _unheard: Notification) -> Result<(), Error> {
        self.store.pass_on(wait::PASS_ON).await
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
}
