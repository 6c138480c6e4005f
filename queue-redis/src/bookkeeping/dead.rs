//! Operator calls on dead letters.

use bytes::Bytes;
use relq_core::{
    Error, JobId,
    error::Operation,
    operator::{Redriven, Selection},
};

use super::Bookkeeping;
use crate::{PartialEffect, Reply, all_steps, command};

impl Bookkeeping {
    /// Makes dead jobs ready again, with no attempt counted.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        all_steps(Operation::Redrive, self.redrive_all(which)).await
    }

    async fn redrive_all(&self, which: &Selection) -> Result<Redriven, Error> {
        let (mut all, mut partial) = (Redriven::default(), PartialEffect::default());
        let mut ids = self.dead(Operation::Redrive, which).await?;
        let mut stuck = 0;
        while let Some(page) = ids.next_page(self, (stuck, partial)).await? {
            let mut rest = &page[..];
            while !rest.is_empty() {
                let redriven = self.redrive_page(rest).await;
                let (handled, step, unreadable) = partial.then(redriven)?;
                rest = rest.get(handled..).unwrap_or_default();
                all.moved += step.moved;
                all.duplicates += step.duplicates;
                // Only those that are dead still: another client may have redriven or
                // purged the others, and then the jobs behind them have moved up.
                stuck += step.duplicates + unreadable;
            }
        }
        Ok(all)
    }

    /// Removes dead jobs. Returns how many it removed.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        all_steps(Operation::Purge, self.purge_all_dead(which)).await
    }

    async fn purge_all_dead(&self, which: &Selection) -> Result<u64, Error> {
        let (mut removed, mut partial) = (0, PartialEffect::default());
        let mut ids = self.dead(Operation::Purge, which).await?;
        while let Some(page) = ids.next_page(self, (0, partial)).await? {
            let mut rest = &page[..];
            while !rest.is_empty() {
                let purged = self.purge_dead_page(rest).await;
                let (handled, jobs) = partial.then(purged)?;
                rest = rest.get(handled..).unwrap_or_default();
                removed += jobs;
            }
        }
        Ok(removed)
    }

    async fn dead<'a>(
        &self,
        operation: Operation,
        which: &'a Selection,
    ) -> Result<DeadIds<'a>, Error> {
        match which {
            Selection::Only(ids) => {
                Ok(DeadIds::Listed(ids.chunks(self.max_jobs_per_step().get() as usize)))
            }
            Selection::All => {
                let mut newest = command("ZRANGE");
                newest.arg(&self.keys.dead).arg(-1).arg(-1).arg("WITHSCORES");
                let newest = self.conn.call(operation, &newest).await?.list()?;
                let time_ms = match newest.into_iter().next() {
                    None => i64::MIN,
                    Some(pair) => {
                        let mut pair = pair.parts()?;
                        pair.part();
                        pair.part().number()?.saturating_add(1)
                    }
                };
                Ok(DeadIds::Before { operation, time_ms })
            }
        }
    }
}

/// The selected dead jobs of a redrive or a purge. It returns their ids page by page.
enum DeadIds<'a> {
    /// All jobs that died before `time_ms`, the millisecond after the last death before the
    /// call. The caller moves the jobs of a page away before it asks for the next one, so
    /// every page begins at the oldest.
    Before {
        operation: Operation,
        time_ms: i64,
    },
    Listed(std::slice::Chunks<'a, JobId>),
}

impl DeadIds<'_> {
    /// Returns the ids of the next page. `stuck` is the number of earlier jobs that
    /// stay dead: they remain at the start of the set, and are skipped. `partial` has
    /// the effect of the earlier calls, which an error of this call must report too.
    async fn next_page(
        &mut self,
        bookkeeping: &Bookkeeping,
        (stuck, partial): (u64, PartialEffect),
    ) -> Result<Option<Vec<Bytes>>, Error> {
        match self {
            Self::Listed(chunks) => {
                let bytes = |id: &JobId| Bytes::copy_from_slice(id.as_str().as_bytes());
                Ok(chunks.next().map(|ids| ids.iter().map(bytes).collect()))
            }
            Self::Before { operation, time_ms } => {
                let mut cmd = command("ZRANGE");
                cmd.arg(&bookkeeping.keys.dead)
                    .arg("-inf")
                    .arg(format!("({time_ms}"))
                    .arg("BYSCORE");
                cmd.arg("LIMIT").arg(stuck).arg(bookkeeping.max_jobs_per_step().get());
                let ids = bookkeeping.conn.call(*operation, &cmd).await;
                let ids = ids.map_err(|error| partial.whole(error))?.list()?;
                let ids: Vec<_> =
                    ids.into_iter().map(Reply::bytes).collect::<Result<_, _>>()?;
                Ok((!ids.is_empty()).then_some(ids))
            }
        }
    }
}
