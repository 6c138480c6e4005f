//! The calls of an operator, on all parts as on one queue. Calls that write go to one
//! part after the other.

use async_trait::async_trait;
use bytes::{BufMut as _, Bytes, BytesMut};
use relq_core::{
    ClaimRequest, Error, JobId, Operator, Queue, ReliableQueue as _, Stats,
    error::{ErrorContext, Operation},
    operator::{
        Audit, Cancelled, JobView, Page, PageCursor, PeekRequest, Redriven, Selection,
    },
};

use crate::{FairTurn, Partitioned, joined};

/// The number of bytes of a cursor before the part's own cursor: the part's number and
/// whether its own cursor follows.
const PREFIX: usize = 3;

#[async_trait]
impl Operator for Partitioned<dyn Queue> {
    /// Adds up the figures of the parts. The queue counts as paused if any part is.
    async fn stats(&self) -> Result<Stats, Error> {
        let parts = self.stats_by_part().await?;
        Ok(parts.iter().fold(Stats::new(), |all, part| add(&all, part)))
    }

    async fn stats_by_part(&self) -> Result<Vec<Stats>, Error> {
        joined::of_reads(self.all(Operator::stats).await)
    }

    /// Returns the jobs of one part after those of another. Each part ends its page by the
    /// bytes of its own jobs. So a page with about as many bytes as a step moves (R21) asks
    /// no further part.
    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.capabilities().check_peek(ask)?;
        let (mut part, mut after) = match &ask.after {
            None => (0, None),
            Some(cursor) => self.read_cursor(cursor)?,
        };
        let mut page = Page::default();
        loop {
            let taken = u32::try_from(page.jobs.len()).unwrap_or(u32::MAX);
            let left = ask.limit.get().saturating_sub(taken);
            let bytes: usize = page.jobs.iter().map(JobView::total_bytes).sum();
            let has_room = bytes < ClaimRequest::MAX_BYTES;
            let limit = std::num::NonZeroU32::new(left).filter(|_| has_room);
            let Some(limit) = limit else {
                page.next = Some(cursor(part, after.as_ref()));
                return Ok(page);
            };
            let mut own = PeekRequest::new(ask.state, limit);
            own.after = after;
            own.parts = ask.parts;
            let found = self.parts[part].peek(&own).await;
            self.notice(part, &found);
            let found = found?;
            page.jobs.extend(found.jobs);
            if let Some(next) = found.next {
                page.next = Some(cursor(part, Some(&next)));
                return Ok(page);
            }
            (part, after) = (part + 1, None);
            if part == self.parts.len() {
                return Ok(page);
            }
        }
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.begin_write(Operation::Redrive).await?;
        let redriven = self.each(|part| part.redrive(which)).await;
        let all = joined::of_writes(redriven, |part| part.moved > 0)?.into_iter();
        Ok(all.fold(Redriven::default(), |all, part| Redriven {
            moved: all.moved + part.moved,
            duplicates: all.duplicates + part.duplicates,
        }))
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.begin_write(Operation::Purge).await?;
        let purged = self.each(|part| part.purge_dead(which)).await;
        Ok(joined::of_writes(purged, |jobs| *jobs > 0)?.into_iter().sum())
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.begin_write(Operation::Purge).await?;
        let purged = self.each(Operator::purge).await;
        Ok(joined::of_writes(purged, |jobs| *jobs > 0)?.into_iter().sum())
    }

    /// Asks the part to which a client-made id belongs, and then the others, which have
    /// the ids that relq made.
    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.begin_write(Operation::Cancel).await?;
        let first = self.part_of.text(job.as_str());
        let mut left = self.parts.len();
        for part in FairTurn::beginning_at(first, self.parts.len()) {
            let cancelled = self.parts[part].cancel(job).await;
            self.notice(part, &cancelled);
            left -= 1;
            if !matches!(cancelled, Ok(Cancelled::NotFound)) {
                return joined::of_search(cancelled, left);
            }
        }
        Ok(Cancelled::NotFound)
    }

    async fn pause(&self) -> Result<(), Error> {
        self.begin_write(Operation::Pause).await?;
        joined::of_writes(self.each(Operator::pause).await, |()| true).map(drop)
    }

    async fn resume(&self) -> Result<(), Error> {
        self.begin_write(Operation::Resume).await?;
        joined::of_writes(self.each(Operator::resume).await, |()| true).map(drop)
    }

    /// Audits the parts one after the other, because an audit reads everything. Each
    /// problem begins with the part's number.
    async fn audit(&self) -> Result<Audit, Error> {
        let mut all = Audit::default();
        for (part, queue) in self.parts.iter().enumerate() {
            let audit = queue.audit().await;
            self.notice(part, &audit);
            let Audit { jobs, problems } = audit?;
            all.jobs += jobs;
            all.problems.extend(problems.iter().map(|it| format!("part {part}: {it}")));
        }
        Ok(all)
    }
}

impl Partitioned<dyn Queue> {
    fn read_cursor(
        &self,
        cursor: &PageCursor,
    ) -> Result<(usize, Option<PageCursor>), Error> {
        let read = cursor.0.split_first_chunk::<PREFIX>().and_then(|(prefix, _)| {
            let [high, low, has_own] = *prefix;
            let part = usize::from(u16::from_be_bytes([high, low]));
            let own = (has_own == 1).then(|| PageCursor(cursor.0.slice(PREFIX..)));
            (part < self.parts.len()).then_some((part, own))
        });
        read.ok_or_else(|| {
            let backend = self.capabilities().backend;
            let at = ErrorContext { backend, operation: Operation::Peek };
            let reason = "the cursor is not one that this queue returned".to_owned();
            Error::Invalid { at, reason }
        })
    }
}

fn cursor(part: usize, own: Option<&PageCursor>) -> PageCursor {
    let mut bytes = BytesMut::new();
    bytes.put_u16(u16::try_from(part).expect("a queue has at most 65,536 parts"));
    bytes.put_u8(u8::from(own.is_some()));
    bytes.put_slice(own.map_or(&Bytes::new(), |own| &own.0));
    PageCursor(bytes.freeze())
}

fn add(all: &Stats, part: &Stats) -> Stats {
    let mut sum = Stats::new();
    sum.ready = all.ready + part.ready;
    sum.scheduled = all.scheduled + part.scheduled;
    sum.leased = all.leased + part.leased;
    sum.overdue = all.overdue + part.overdue;
    sum.dead = all.dead + part.dead;
    sum.finished = all.finished + part.finished;
    sum.discarded = all.discarded + part.discarded;
    sum.cancelled = all.cancelled + part.cancelled;
    sum.paused = all.paused || part.paused;
    sum.next_due_in = all.next_due_in.into_iter().chain(part.next_due_in).min();
    sum.oldest_ready_age = all.oldest_ready_age.max(part.oldest_ready_age);
    sum
}
