//! Implements the `Operator` trait for this backend: statistics, peek, cancel, purge,
//! audit.

use async_trait::async_trait;
use relq_core::{
    Error, JobId, Operator, ReliableQueue as _, Stats,
    error::Operation,
    operator::{Audit, Cancelled, JobState, Page, PeekRequest, Redriven, Selection},
};

use relq_redis::all_steps;

use crate::{ProcessingListQueue, audit, cancel, peek};

#[async_trait]
impl Operator for ProcessingListQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        self.store.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.capabilities().check_peek(ask)?;
        match ask.state {
            JobState::Ready | JobState::Leased => peek::peek(&self.store, ask).await,
            JobState::Scheduled | JobState::Dead => {
                self.store.bookkeeping.peek_kept(ask).await
            }
        }
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.store.bookkeeping.redrive(which).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.store.bookkeeping.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        all_steps(Operation::Purge, self.store.purge()).await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        all_steps(Operation::Cancel, cancel::cancel(&self.store, job)).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.store.bookkeeping.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.store.bookkeeping.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        audit::audit(&self.store).await
    }
}
