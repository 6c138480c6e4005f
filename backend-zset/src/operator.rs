//! The operator's side.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use queue_core::{
    Audit, Cancelled, Error, JobId, Operation, Operator, Page, PeekRequest, Redriven,
    Stats, Which,
};
use queue_redis::{Reply, command};

use crate::{ZsetQueue, audit, cancel, peek};

/// Dead letters moved or removed by one call of a script.
const PAGE: usize = 500;

#[async_trait]
impl Operator for ZsetQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        let counts = self.store.stats().await?;
        let number = |at: usize| counts.get(at).copied().unwrap_or(0);
        let count = |at: usize| u64::try_from(number(at)).unwrap_or(0);
        let mut stats = Stats::new();
        stats.ready = count(0);
        stats.scheduled = count(1);
        stats.leased = count(2);
        stats.overdue = count(3);
        stats.dead = count(4);
        stats.finished = count(5);
        stats.discarded = count(6);
        stats.cancelled = count(7);
        stats.paused = number(8) == 1;
        stats.next_due_in = u64::try_from(number(9)).ok().map(Duration::from_millis);
        Ok(stats)
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn redrive(&self, which: &Which) -> Result<Redriven, Error> {
        let mut all = Redriven::default();
        let mut ids = self.dead(Operation::Redrive, which).await?;
        while let Some(page) = ids.next_page(self, all.duplicates).await? {
            let Redriven { moved, duplicates } = self.store.redrive(&page).await?;
            all.moved += moved;
            all.duplicates += duplicates;
        }
        Ok(all)
    }

    async fn purge_dead(&self, which: &Which) -> Result<u64, Error> {
        let mut removed = 0;
        let mut ids = self.dead(Operation::Purge, which).await?;
        while let Some(page) = ids.next_page(self, 0).await? {
            removed += self.store.purge_dead(&page).await?;
        }
        Ok(removed)
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.store.purge().await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        cancel::cancel(self, job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.store.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.store.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        audit::audit(&self.store).await
    }
}

/// The ids of dead jobs that an operator means, page by page.
enum DeadIds<'a> {
    /// All that are dead by then (ms); those moved away make room for the next.
    Until {
        operation: Operation,
        time_ms: i64,
    },
    Listed(std::slice::Chunks<'a, JobId>),
}

impl DeadIds<'_> {
    /// The next page, passing over `stuck` jobs at the start that stay dead.
    async fn next_page(
        &mut self,
        queue: &ZsetQueue,
        stuck: u64,
    ) -> Result<Option<Vec<Bytes>>, Error> {
        match self {
            Self::Listed(chunks) => {
                let bytes = |id: &JobId| Bytes::copy_from_slice(id.as_str().as_bytes());
                Ok(chunks.next().map(|ids| ids.iter().map(bytes).collect()))
            }
            Self::Until { operation, time_ms } => {
                let mut cmd = command("ZRANGE");
                cmd.arg(&queue.store.keys.dead)
                    .arg("-inf")
                    .arg(*time_ms)
                    .arg("BYSCORE");
                cmd.arg("LIMIT").arg(stuck).arg(PAGE);
                let ids = queue.store.conn.call(*operation, &cmd).await?.list()?;
                let ids: Vec<_> =
                    ids.into_iter().map(Reply::bytes).collect::<Result<_, _>>()?;
                Ok((!ids.is_empty()).then_some(ids))
            }
        }
    }
}

impl ZsetQueue {
    async fn dead<'a>(
        &self,
        operation: Operation,
        which: &'a Which,
    ) -> Result<DeadIds<'a>, Error> {
        match which {
            Which::Only(ids) => Ok(DeadIds::Listed(ids.chunks(PAGE))),
            Which::All => {
                let time = self.store.conn.call(operation, &command("TIME")).await?;
                let seconds = time.list()?.into_iter().next();
                let seconds = seconds.map_or(Ok(0), Reply::number)?;
                Ok(DeadIds::Until { operation, time_ms: (seconds + 1) * 1000 })
            }
        }
    }
}
