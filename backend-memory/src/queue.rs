//! The calls of producers and workers on a queue in memory.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Priority, PushToken, QueueName,
    Receipt, ReliableQueue, Settlement, WorkerId,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    environment::{Clock, Environment, Timestamp},
    error::{ErrorContext, Operation},
    operator::WorkerReport,
    outcome::{Extended, Pushed, Recovered, Released, Settled},
    results::ResultQueue,
    schedule::ScheduleQueue,
};

use crate::state::State;

/// How often a waiting call looks at its queue. No notification wakes it.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// The options and limits of this backend.
pub(crate) const CAPABILITIES: Capabilities = Capabilities {
    backend: "memory",
    supported: Cow::Borrowed(&[
        Capability::ClientIds,
        Capability::PushTokens,
        Capability::Delay,
        Capability::Priority,
        Capability::Unique,
        Capability::Expiry,
        Capability::Schedules,
        Capability::ReadyAge,
        Capability::Results,
        Capability::Followers,
        Capability::Inspect,
        Capability::Restore,
    ]),
    priorities: Priority::LOWEST..=Priority::HIGHEST,
    lateness: POLL,
    order: Order::Fifo,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};

/// How many bits of a lease's number count within its queue. The bits above differ between
/// the queues of a store, so that a receipt is valid in its own queue only (R7, R19).
const NUMBER_BITS: u32 = 40;

/// The queues of the store, by name. Clones share the same store.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Mutex<BTreeMap<QueueName, State>>>);

impl MemoryStore {
    /// Opens a queue, which need not exist yet.
    pub fn open(&self, name: QueueName, environment: Environment) -> MemoryQueue {
        MemoryQueue { store: self.clone(), name, environment }
    }
}

/// A queue in memory.
#[derive(Debug, Clone)]
pub struct MemoryQueue {
    store: MemoryStore,
    name: QueueName,
    environment: Environment,
}

impl fmt::Display for MemoryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {} in memory", self.name)
    }
}

impl MemoryQueue {
    /// Runs one atomic step: no other caller sees the queue between its start and its
    /// end.
    pub(crate) fn step<T>(&self, step: impl FnOnce(&mut State, Timestamp) -> T) -> T {
        let mut queues = self.store.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.environment.clock().now();
        let first_number = (queues.len() as u64) << NUMBER_BITS;
        let new = || State { last_number: first_number, ..State::default() };
        step(queues.entry(self.name.clone()).or_insert_with(new), now)
    }

    pub(crate) fn clock(&self) -> &dyn Clock {
        self.environment.clock()
    }

    pub(crate) fn new_id(&self) -> JobId {
        JobId::new(self.environment.random().text(20)).expect("20 plain characters")
    }
}

/// The error for a cursor that this backend did not make, or not for this listing.
pub(crate) fn foreign_cursor(operation: Operation) -> Error {
    let at = ErrorContext { backend: CAPABILITIES.backend, operation };
    let reason = "the page cursor is not one that this backend made for this listing";
    Error::Invalid { at, reason: reason.to_owned() }
}

#[async_trait]
impl ReliableQueue for MemoryQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        CAPABILITIES.check_push(jobs, token.is_some())?;
        let id = |(place, job): (usize, &NewJob)| match (&job.id, token) {
            (Some(id), _) => (id.clone(), job.clone()),
            (None, Some(token)) => (token.job_id(place), job.clone()),
            (None, None) => (self.new_id(), job.clone()),
        };
        let with_ids: Vec<_> = jobs.iter().enumerate().map(id).collect();
        let at =
            ErrorContext { backend: CAPABILITIES.backend, operation: Operation::Push };
        let results = self
            .step(|state, now| state.push(with_ids, token, now))
            .map_err(|(leader, why)| Error::CannotFollow { at, leader, why })?;
        if results.len() == jobs.len() {
            return Ok(results);
        }
        let reason = format!("the token is that of a push of {} jobs", results.len());
        Err(Error::Invalid { at, reason })
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        CAPABILITIES.check_claim(ask)?;
        let most = ask.max.min(CAPABILITIES.limits.max_jobs_per_call).get() as usize;
        let clock = self.environment.clock();
        let give_up = clock.elapsed().saturating_add(ask.wait);
        loop {
            let taken = self.step(|state, now| state.claim(ask, most, now));
            let left = give_up.saturating_sub(clock.elapsed());
            if !taken.is_empty() || left.is_zero() {
                return Ok(taken);
            }
            clock.sleep(left.min(POLL)).await;
        }
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.environment.clock().sleep(limit.min(POLL)).await;
        Ok(())
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        CAPABILITIES.check_settlements(done)?;
        CAPABILITIES.check_batch(Operation::Settle, done.len())?;
        Ok(self
            .step(|state, now| done.iter().map(|one| state.settle(one, now)).collect()))
    }

    async fn extend(
        &self,
        _: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        CAPABILITIES.check_batch(Operation::Extend, held.len())?;
        CAPABILITIES.check_lease(Operation::Extend, lease)?;
        Ok(self.step(|state, now| {
            held.iter().map(|one| state.extend(one, lease, now)).collect()
        }))
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        Ok(Released { jobs: self.step(|state, _| state.release_worker(worker)) })
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        self.step(|state, now| state.report_worker(report, now));
        Ok(())
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        Ok(self.step(|state, now| state.recover(page, now)))
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        Some(self)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        Some(self)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        Ok(Arc::new(self.clone()))
    }
}
