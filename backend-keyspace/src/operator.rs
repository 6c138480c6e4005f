//! The operator's side.

use async_trait::async_trait;
use queue_core::{
    Audit, Cancelled, Error, JobId, Operation, Operator, Page, PeekRequest, Redriven,
    Stats, Which,
};

use crate::{
    KeyspaceQueue, audit, cancel, config::Strangers, peek, pick::Sweep, purge,
    scripts::Store,
};

/// Pages of a thousand keys that stats look at for keys that ought not to be there.
const PAGES: usize = 10;

#[async_trait]
impl Operator for KeyspaceQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        let mut stats = self.store.stats(Operation::Stats).await?;
        if stats.ready > 0 {
            let strangers = count_strangers(&self.store, self.strangers).await?;
            stats.ready = stats.ready.saturating_sub(strangers);
        }
        Ok(stats)
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        peek::peek(&self.store, ask).await
    }

    async fn redrive(&self, which: &Which) -> Result<Redriven, Error> {
        self.store.shelf.redrive(which).await
    }

    async fn purge_dead(&self, which: &Which) -> Result<u64, Error> {
        self.store.shelf.purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        purge::purge(&self.store).await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        cancel::cancel(self, job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.store.shelf.pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.store.shelf.resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        audit::audit(&self.store, self.strangers).await
    }
}

/// What is unclaimed and no ready job: where it is not tolerated, as far as a few pages
/// show; in a larger database that few are a fault for the audit to find.
async fn count_strangers(store: &Store, strangers: Strangers) -> Result<u64, Error> {
    let pages = match strangers {
        Strangers::Refused => PAGES,
        Strangers::Tolerated => usize::MAX,
    };
    let mut sweep = Sweep::of_all();
    for _ in 0..pages {
        if sweep.next_page(store, Operation::Stats).await?.is_none() {
            break;
        }
    }
    Ok(sweep.strangers)
}
