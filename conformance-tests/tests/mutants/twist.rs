//! A queue that does one thing wrong which no change of a script expresses.

use std::{fmt, num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use async_trait::async_trait;
use queue_core::*;

/// What is done in place of the queue's own calls. What is not written is done right.
#[async_trait]
pub(crate) trait Twist: Send + Sync {
    fn capabilities<'a>(&'a self, right: &'a Right) -> &'a Capabilities {
        right.capabilities()
    }

    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        right.push(jobs, token).await
    }

    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        right.claim(ask).await
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        right.settle(done).await
    }

    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        right.extend(worker, held, lease).await
    }

    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        right.recover(page).await
    }

    async fn turn(
        &self,
        right: &Right,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> Turn {
        let settled = self.settle(right, done).await;
        let at_once = ask.clone().wait(Duration::ZERO);
        Turn { settled, claimed: self.claim(right, &at_once).await }
    }

    async fn leave(&self, right: &Right, worker: &WorkerId) -> Result<Released, Error> {
        right.leave(worker).await
    }

    async fn pause(&self, right: &Right) -> Result<(), Error> {
        right.pause().await
    }
}

/// A healthy queue, and the time that its client goes by.
pub(crate) struct Right {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) environment: Environment,
}

impl Deref for Right {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

/// A healthy queue, and what is done wrong on it.
pub(crate) struct Twisted {
    pub(crate) right: Right,
    pub(crate) twist: Arc<dyn Twist>,
}

#[async_trait]
impl ReliableQueue for Twisted {
    fn capabilities(&self) -> &Capabilities {
        self.twist.capabilities(&self.right)
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.twist.push(&self.right, jobs, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.twist.claim(&self.right, ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.twist.settle(&self.right, done).await
    }

    async fn turn(&self, done: &[Settlement], ask: &ClaimRequest) -> Turn {
        self.twist.turn(&self.right, done, ask).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.twist.extend(&self.right, worker, held, lease).await
    }

    async fn leave(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.twist.leave(&self.right, worker).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.twist.recover(&self.right, page).await
    }

    async fn sibling(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        self.right.sibling().await
    }
}

#[async_trait]
impl Operator for Twisted {
    async fn stats(&self) -> Result<Stats, Error> {
        self.right.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.right.peek(ask).await
    }

    async fn redrive(&self, which: &Which) -> Result<Redriven, Error> {
        self.right.redrive(which).await
    }

    async fn purge_dead(&self, which: &Which) -> Result<u64, Error> {
        self.right.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.right.purge().await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.right.cancel(job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.twist.pause(&self.right).await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.right.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.right.audit().await
    }
}

impl fmt::Display for Twisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, twisted", self.right.queue)
    }
}

impl fmt::Debug for Twisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Twisted({self})")
    }
}
