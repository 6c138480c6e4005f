//! The queue that the worker uses. Each call travels to the store and back, and the
//! scenario decides whether it fails on the way.

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Bytes, ClaimRequest, Delivery, Error, JobId, NewJob, Operator, PushToken, Receipt,
    ReliableQueue, Settlement, Stats, WorkerId,
    capabilities::Capabilities,
    error::Operation,
    operator::{Audit, Cancelled, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
};
use tokio::runtime::Handle;

use crate::{
    clock::is_heartbeat,
    scenario::{CallEffect, FaultKind},
    store::{World, at_once},
    trace::{Ask, Delivered, Refusal, Reply, Request},
};

#[derive(Clone)]
pub(crate) struct ScriptedQueue(pub Arc<World>);

impl fmt::Debug for ScriptedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ScriptedQueue")
    }
}

impl fmt::Display for ScriptedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("scripted queue")
    }
}

/// How often a wait for jobs looks for a ready one.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);

const NOT_OURS: &str = "the simulation keeps the store until the worker has ended";

impl Request {
    fn of(operation: Operation) -> Self {
        Self {
            operation,
            settlements: Vec::new(),
            ask: None,
            extended: Vec::new(),
            length: Duration::ZERO,
        }
    }

    fn settling(mut self, settlements: &[Settlement]) -> Self {
        self.settlements = settlements.to_vec();
        self
    }

    fn claiming(mut self, ask: &ClaimRequest) -> Self {
        self.ask = Some(Ask { max: ask.max.get() as usize, wait: ask.wait });
        self
    }
}

fn refused<T, U>(
    result: &Result<T, Error>,
    ok: impl FnOnce(&T) -> U,
) -> Option<Result<U, Refusal>> {
    Some(result.as_ref().map(ok).map_err(Refusal::from))
}

fn delivered(delivery: &Delivery) -> Delivered {
    let text = std::str::from_utf8(&delivery.payload).unwrap();
    Delivered {
        job: text.parse().unwrap(),
        lease: delivery.receipt.token().clone(),
        attempt: delivery.attempt(),
        is_last: delivery.is_last_attempt(),
        length: delivery.lease,
    }
}

pub(crate) fn describe_claimed(claimed: &Result<Vec<Delivery>, Error>) -> Reply {
    let claimed = refused(claimed, |jobs| jobs.iter().map(delivered).collect());
    Reply { claimed, ..Reply::default() }
}

fn describe_settled(settled: &Result<Vec<Settled>, Error>) -> Reply {
    Reply { settled: refused(settled, Vec::clone), ..Reply::default() }
}

fn describe_both(both: &SettledAndClaimed) -> Reply {
    let settled = describe_settled(&both.settled).settled;
    Reply { settled, ..describe_claimed(&both.claimed) }
}

impl ScriptedQueue {
    async fn settle_call(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let fault = self.0.next_fault(Operation::Settle);
        let request = Request::of(Operation::Settle).settling(done);
        let done = done.to_vec();
        let effect = move |world: &World| settle(world, &done, fault.kind);
        self.0.send(request, fault, effect, describe_settled).await.expect(NOT_OURS)
    }
}

/// The members at even positions.
fn every_second<T: Clone>(all: &[T]) -> Vec<T> {
    all.iter().step_by(2).cloned().collect()
}

/// The results of a heartbeat for `count` leases of which those at odd positions are
/// unknown.
fn in_part(extended: &[Extended], effect: CallEffect, count: usize) -> Vec<Extended> {
    let known = match effect {
        CallEffect::Applied => every_second(extended),
        CallEffect::NotApplied => extended.to_vec(),
    };
    let mut known = known.into_iter();
    let result = |at: usize| {
        if at.is_multiple_of(2) { known.next().unwrap() } else { Extended::Unknown }
    };
    (0..count).map(result).collect()
}

fn settle(
    world: &World,
    done: &[Settlement],
    kind: FaultKind,
) -> Result<Vec<Settled>, Error> {
    world.outcome(Operation::Settle, kind, || at_once(world.memory.settle(done)))
}

#[async_trait]
impl ReliableQueue for ScriptedQueue {
    fn capabilities(&self) -> &Capabilities {
        &self.0.capabilities
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.0.memory.push(jobs, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        let fault = self.0.next_fault(Operation::Claim);
        let request = Request::of(Operation::Claim).claiming(ask);
        let reply = self.0.send_claim(request, fault, ask.clone(), describe_claimed);
        reply.await.expect(NOT_OURS)
    }

    /// Only a worker on several queues waits in this way. The trace does not show it.
    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        let clock = self.0.environment.clock();
        let end = clock.elapsed().saturating_add(limit);
        while self.0.stats().ready == 0 && clock.elapsed() < end {
            let left = end.saturating_sub(clock.elapsed());
            clock.sleep(left.min(LOOK_EVERY)).await;
        }
        Ok(())
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.settle_call(done).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let fault = self.0.next_fault(Operation::Settle);
        let claim_fault = self.0.next_fault(Operation::Claim);
        let request = Request::of(Operation::Settle).settling(done).claiming(ask);
        let (done, ask) = (done.to_vec(), ask.clone());
        let effect = move |world: &World| {
            let settled = settle(world, &done, fault.kind);
            let kind = if settled.is_ok() { claim_fault.kind } else { fault.kind };
            SettledAndClaimed { settled, claimed: world.claim(&ask, kind) }
        };
        self.0.send(request, fault, effect, describe_both).await.expect(NOT_OURS)
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let fault = self.0.next_fault(Operation::Extend);
        let mut request = Request::of(Operation::Extend);
        request.extended = held.iter().map(|one| one.token().clone()).collect();
        request.length = lease;
        let (worker, held) = (worker.clone(), held.to_vec());
        let effect = move |world: &World| {
            world.outcome(Operation::Extend, fault.kind, || match fault.kind {
                FaultKind::InPart(effect) => {
                    let asked = match effect {
                        CallEffect::Applied => held.clone(),
                        CallEffect::NotApplied => every_second(&held),
                    };
                    let extended =
                        at_once(world.memory.extend(&worker, &asked, lease))?;
                    Ok(in_part(&extended, effect, held.len()))
                }
                _ => at_once(world.memory.extend(&worker, &held, lease)),
            })
        };
        let describe = |extended: &Result<Vec<Extended>, Error>| Reply {
            extended: refused(extended, Vec::clone),
            ..Reply::default()
        };
        self.0.send(request, fault, effect, describe).await.expect(NOT_OURS)
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let fault = self.0.next_fault(Operation::ReleaseWorker);
        let request = Request::of(Operation::ReleaseWorker);
        let worker = worker.clone();
        let effect = move |world: &World| {
            world.outcome(Operation::ReleaseWorker, fault.kind, || {
                at_once(world.memory.release_worker(&worker))
            })
        };
        let describe = |released: &Result<Released, Error>| Reply {
            released: refused(released, |released| released.jobs),
            ..Reply::default()
        };
        self.0.send(request, fault, effect, describe).await.expect(NOT_OURS)
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let fault = self.0.next_fault(Operation::Recover);
        let request = Request::of(Operation::Recover);
        let own = NonZeroU32::new(self.0.scenario.settings.recover_page).unwrap();
        let effect = move |world: &World| {
            world.outcome(Operation::Recover, fault.kind, || {
                at_once(world.memory.recover(page.min(own)))
            })
        };
        let describe = |recovered: &Result<Recovered, Error>| Reply {
            recovered: refused(recovered, |recovered| *recovered),
            ..Reply::default()
        };
        self.0.send(request, fault, effect, describe).await.expect(NOT_OURS)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        if is_heartbeat() {
            *self.0.heartbeat.lock().unwrap() = Some(Handle::current());
        }
        let fault = self.0.next_fault(Operation::Connect);
        let request = Request::of(Operation::Connect);
        let effect = move |world: &World| {
            world.outcome(Operation::Connect, fault.kind, || Ok(()))
        };
        let describe = |opened: &Result<(), Error>| Reply {
            other: refused(opened, |()| ()),
            ..Reply::default()
        };
        let reply = self.0.send(request, fault, effect, describe);
        reply.await.expect(NOT_OURS).map(|()| Arc::new(self.clone()) as _)
    }
}

/// Only `stats` works: the worker calls no other method of an operator.
#[async_trait]
impl Operator for ScriptedQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        let fault = self.0.next_fault(Operation::Stats);
        let request = Request::of(Operation::Stats);
        let effect = move |world: &World| {
            world.outcome(Operation::Stats, fault.kind, || Ok(world.stats()))
        };
        let describe = |stats: &Result<Stats, Error>| Reply {
            other: refused(stats, |_| ()),
            ..Reply::default()
        };
        self.0.send(request, fault, effect, describe).await.expect(NOT_OURS)
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.0.memory.peek(ask).await
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.0.memory.redrive(which).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.0.memory.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.0.memory.purge().await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.0.memory.cancel(job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.0.memory.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.0.memory.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.0.memory.audit().await
    }
}

/// A lease's token as readable text.
pub(crate) fn words(lease: &Bytes) -> String {
    let number = lease[..].try_into().map_or(0, u64::from_be_bytes);
    format!("lease {number}")
}
