//! Implements the operator's methods for the queue: stats, peek, redrive, cancel,
//! audit.

use async_trait::async_trait;
use relq_core::{
    Error, JobId, Operator, ReliableQueue as _, Stats,
    error::Operation,
    operator::{
        Audit, Cancelled, InspectQueue, Page, PeekRequest, Redriven, RestoreQueue,
        Selection,
    },
};

use crate::audit::Inspect;
use crate::call::Call;
use crate::dead::{PurgeDead, Redrive, Select};
use crate::failure::Failure;
use crate::pages::Pages;
use crate::peek::{Count, Peek};
use crate::queue::SqliteQueue;
use crate::steer::{Cancel, Purge, Steer};

impl SqliteQueue {
    pub(crate) async fn read<C: Call>(&self, call: C) -> Result<C::Answer, Failure> {
        self.reading_thread().await?.call(call).await
    }

    async fn redrive_pages(&self, which: &Selection) -> Result<Redriven, Failure> {
        let which = which.clone();
        let (mut total, mut pages) = (Redriven::default(), Pages::default());
        let mut rest = self.db_thread().call(Select { which }).await?;
        while let Some(selection) = rest {
            let page = pages.then(self.db_thread().call(Redrive(selection)).await)?;
            total.moved += page.done.moved;
            total.duplicates += page.done.duplicates;
            rest = page.rest;
        }
        Ok(total)
    }

    async fn purge_dead_pages(&self, which: &Selection) -> Result<u64, Failure> {
        let which = which.clone();
        let (mut total, mut pages) = (0, Pages::default());
        let mut rest = self.db_thread().call(Select { which }).await?;
        while let Some(selection) = rest {
            let page = pages.then(self.db_thread().call(PurgeDead(selection)).await)?;
            total += page.done;
            rest = page.rest;
        }
        Ok(total)
    }

    async fn purge_pages(&self) -> Result<u64, Failure> {
        let (mut total, mut pages) = (0, Pages::default());
        loop {
            let page = pages.then(self.db_thread().call(Purge).await)?;
            total += page.jobs;
            if !page.more {
                return Ok(total);
            }
        }
    }
}

#[async_trait]
impl Operator for SqliteQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        self.read(Count).await.map_err(|it| it.at(Operation::Stats))
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.capabilities().check_peek(ask)?;
        let call = Peek::new(ask).map_err(|it| it.at(Operation::Peek))?;
        self.read(call).await.map_err(|it| it.at(Operation::Peek))
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.redrive_pages(which).await.map_err(|it| it.at(Operation::Redrive))
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.purge_dead_pages(which).await.map_err(|it| it.at(Operation::Purge))
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.purge_pages().await.map_err(|it| it.at(Operation::Purge))
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        let call = Cancel { job: job.clone() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::Cancel))
    }

    async fn pause(&self) -> Result<(), Error> {
        self.db_thread().call(Steer::Pause).await.map_err(|it| it.at(Operation::Pause))
    }

    async fn resume(&self) -> Result<(), Error> {
        self.db_thread()
            .call(Steer::Resume)
            .await
            .map_err(|it| it.at(Operation::Resume))
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.read(Inspect).await.map_err(|it| it.at(Operation::Audit))
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        Some(self)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        Some(self)
    }
}
