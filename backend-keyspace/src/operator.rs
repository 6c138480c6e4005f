//! The operator's side.

use async_trait::async_trait;
use relq_core::{
    Audit, Cancelled, Error, JobId, Operation, Operator, Page, PeekRequest, Redriven,
    Selection, Stats,
};

use crate::{
    KeyspaceQueue, audit, cancel, config::ForeignKeys, peek, pick::Sweep, purge,
    scripts::Store,
};

/// Pages of a thousand keys that stats look at for keys that ought not to be there.
const PAGES: usize = 10;

#[async_trait]
impl Operator for KeyspaceQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        let mut stats = self.store.stats(Operation::Stats).await?;
        if stats.ready > 0 {
            let foreign_keys =
                count_foreign_keys(&self.store, self.foreign_keys).await?;
            stats.ready = stats.ready.saturating_sub(foreign_keys);
        }
        Ok(stats)
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.store.bookkeeping.redrive(which).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.store.bookkeeping.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        purge::purge(&self.store).await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        cancel::cancel(self, job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.store.bookkeeping.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.store.bookkeeping.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        audit::audit(&self.store, self.foreign_keys).await
    }
}

/// What is unclaimed and no ready job: where it is not tolerated, as far as a few pages
/// show; in a larger database that few are a fault for the audit to find.
async fn count_foreign_keys(
    store: &Store,
    foreign_keys: ForeignKeys,
) -> Result<u64, Error> {
    let pages = match foreign_keys {
        ForeignKeys::Refused => PAGES,
        ForeignKeys::Tolerated => usize::MAX,
    };
    let mut sweep = Sweep::of_all();
    for _ in 0..pages {
        if sweep.next_page(store, Operation::Stats).await?.is_none() {
            break;
        }
    }
    Ok(sweep.foreign_keys)
}
