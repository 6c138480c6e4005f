//! Operator calls on dead letters.

use std::collections::VecDeque;

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
                let ranges = self.times_of_all_dead(operation).await?;
                Ok(DeadIds::Between { operation, ranges, stuck_before: 0 })
            }
        }
    }

    /// Returns the ranges of the times at which all jobs that are dead now have died. A restored
    /// job may have a later time than the clock shows (R34), and so may a job from before the
    /// clock was set back. These jobs are a range of their own, and the first one: what dies
    /// meanwhile has a time between the two ranges, until the clock reaches the first of them.
    async fn times_of_all_dead(
        &self,
        operation: Operation,
    ) -> Result<VecDeque<TimesOfDeath>, Error> {
        let newest = ["+inf", "-inf", "BYSCORE", "REV"];
        let Some(newest) = self.time_of_death(operation, &newest).await? else {
            return Ok(VecDeque::new());
        };
        let now = self.read_time(operation).await?.unix_ms();
        // The score of a job may have a fraction of a millisecond.
        let until = |newest: i64| format!("({}", newest.saturating_add(1));
        let start = "-inf".to_owned();
        if newest <= now {
            // No other job dies in this range.
            let all = TimesOfDeath { start, end: until(newest), left: u64::MAX };
            return Ok([all].into());
        }
        let (after_now, before) = ((now + 1).to_string(), until(now));
        let ahead = self.count_dead(operation, after_now, until(newest)).await?;
        let mut ranges = VecDeque::from([ahead]);
        let past = [&*before, "-inf", "BYSCORE", "REV"];
        if let Some(last) = self.time_of_death(operation, &past).await? {
            ranges.push_back(self.count_dead(operation, start, until(last)).await?);
        }
        Ok(ranges)
    }

    async fn count_dead(
        &self,
        operation: Operation,
        start: String,
        end: String,
    ) -> Result<TimesOfDeath, Error> {
        let mut cmd = command("ZCOUNT");
        cmd.arg(&self.keys.dead).arg(&start).arg(&end);
        let left = self.conn.call(operation, &cmd).await?.number()?;
        Ok(TimesOfDeath { start, end, left: u64::try_from(left).unwrap_or(0) })
    }

    /// The time (ms) of the first dead job in a range of `ZRANGE`; `None` if it has none.
    async fn time_of_death(
        &self,
        operation: Operation,
        range: &[&str],
    ) -> Result<Option<i64>, Error> {
        let mut cmd = command("ZRANGE");
        cmd.arg(&self.keys.dead)
            .arg(range)
            .arg("LIMIT")
            .arg(0)
            .arg(1)
            .arg("WITHSCORES");
        let found = self.conn.call(operation, &cmd).await?.list()?;
        let Some(pair) = found.into_iter().next() else { return Ok(None) };
        let mut pair = pair.parts()?;
        pair.part();
        pair.part().number().map(Some)
    }
}

/// The jobs that died in a range of times, as `ZRANGE` takes them.
#[derive(Debug)]
struct TimesOfDeath {
    start: String,
    end: String,
    /// How many of them are not selected yet. If other jobs die in the range meanwhile, the
    /// selection ends all the same.
    left: u64,
}

/// The selected dead jobs of a redrive or a purge. It returns their ids page by page.
enum DeadIds<'a> {
    /// All jobs of these ranges. The caller moves the jobs of a page away before it asks for
    /// the next one, so every page begins at the oldest. `stuck_before` counts the jobs that
    /// stay dead in earlier ranges.
    Between {
        operation: Operation,
        ranges: VecDeque<TimesOfDeath>,
        stuck_before: u64,
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
            Self::Between { operation, ranges, stuck_before } => {
                while let Some(range) = ranges.front_mut() {
                    let page = u64::from(bookkeeping.max_jobs_per_step().get());
                    let mut cmd = command("ZRANGE");
                    cmd.arg(&bookkeeping.keys.dead).arg(&range.start).arg(&range.end);
                    cmd.arg("BYSCORE").arg("LIMIT").arg(stuck - *stuck_before);
                    cmd.arg(page.min(range.left));
                    let ids = bookkeeping.conn.call(*operation, &cmd).await;
                    let ids = ids.map_err(|error| partial.whole(error))?.list()?;
                    if !ids.is_empty() {
                        range.left = range.left.saturating_sub(ids.len() as u64);
                        let ids = ids.into_iter().map(Reply::bytes);
                        return ids.collect::<Result<_, _>>().map(Some);
                    }
                    ranges.pop_front();
                    *stuck_before = stuck;
                }
                Ok(None)
            }
        }
    }
}
