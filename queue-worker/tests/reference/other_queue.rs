//! The other queue of a worker that serves two: it has no job and little of a store. The
//! worker must keep its promises for the scripted queue all the same.

use std::{fmt, future::pending, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, NewJob, PushToken, Receipt, ReliableQueue,
    Settlement, WorkerId,
    capabilities::{Capabilities, LeaseScope},
    environment::Environment,
    error::{ErrorContext, Operation},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};

use crate::store::World;

/// How the store of the other queue replies to claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherStore {
    /// It has no job.
    Empty,
    /// It cannot be reached.
    Down,
    /// It never replies.
    Silent,
}

#[derive(Clone)]
pub(crate) struct OtherQueue {
    store: OtherStore,
    environment: Environment,
    capabilities: Capabilities,
}

impl OtherQueue {
    pub(crate) fn new(store: OtherStore, world: &World) -> Self {
        let capabilities =
            Capabilities { lease_scope: LeaseScope::Job, ..world.capabilities.clone() };
        Self { store, environment: world.environment.clone(), capabilities }
    }
}

impl fmt::Debug for OtherQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OtherQueue({:?})", self.store)
    }
}

impl fmt::Display for OtherQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("other queue")
    }
}

#[async_trait]
impl ReliableQueue for OtherQueue {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn push(
        &self,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        unreachable!("a worker pushes nothing")
    }

    async fn claim(&self, _: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        let at = ErrorContext { backend: "other queue", operation: Operation::Claim };
        match self.store {
            OtherStore::Empty => Ok(Vec::new()),
            OtherStore::Down => Err(Error::Unavailable { at, source: "down".into() }),
            OtherStore::Silent => pending().await,
        }
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.environment.clock().sleep(limit).await;
        Ok(())
    }

    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        unreachable!("no job of this queue is settled")
    }

    async fn extend(
        &self,
        _: &WorkerId,
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        unreachable!("no job of this queue is held")
    }

    async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
        Ok(Released::default())
    }

    async fn recover(&self, _: NonZeroU32) -> Result<Recovered, Error> {
        Ok(Recovered::default())
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        Ok(Arc::new(self.clone()))
    }
}
