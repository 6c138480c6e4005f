//! The operator's methods.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error, JobId, Operator, Stats,
    error::Operation,
    operator::{Audit, Cancelled, JobState, Page, PeekRequest, Redriven, Selection},
};

use super::{RedisQueue, bookkeeping_with};
use crate::{
    bookkeeping::{self, Seen},
    pattern::{JobRef, Pattern},
};

/// How often all places are searched for a job to cancel. During a search, the job may
/// move from a place that was not searched yet to one that was; the second search finds
/// it.
const SEARCHES: usize = 2;

#[async_trait]
impl<P: Pattern> Operator for RedisQueue<P> {
    async fn stats(&self) -> Result<Stats, Error> {
        self.pattern.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        let bookkeeping = self.pattern.bookkeeping();
        match ask.state {
            JobState::Ready | JobState::Leased => self.pattern.peek(ask).await,
            JobState::Scheduled => {
                bookkeeping::page(&[()], ask, |(), look| {
                    bookkeeping.peek_scheduled(look).boxed()
                })
                .await
            }
            JobState::Dead => {
                bookkeeping::page(&[()], ask, |(), look| {
                    bookkeeping.peek_dead(look).boxed()
                })
                .await
            }
        }
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.pattern.bookkeeping().redrive(which).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.pattern.bookkeeping().purge_dead(which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.pattern.purge().await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        let cancelled = cancel(&*self.pattern, job).await?;
        if let Cancelled::Removed(_) = cancelled {
            self.pattern.follow_up(Operation::Cancel).await;
        }
        Ok(cancelled)
    }

    async fn pause(&self) -> Result<(), Error> {
        self.pattern.bookkeeping().pause().await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.pattern.bookkeeping().resume().await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        let bookkeeping = self.pattern.bookkeeping();
        bookkeeping::audit(bookkeeping, || read_all(&*self.pattern).boxed()).await
    }
}

/// Ends a job in any state.
async fn cancel(pattern: &impl Pattern, job: &JobId) -> Result<Cancelled, Error> {
    for _ in 0..SEARCHES {
        if pattern.bookkeeping().cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        if let Some(state) = pattern.cancel(job).await? {
            return Ok(Cancelled::Removed(state));
        }
    }
    Ok(Cancelled::NotFound)
}

/// Ends a leased job if one of `leases` still holds it. Returns whether one did.
/// `leases` are the leases of jobs with this id, as scripts take them.
///
/// # Errors
/// As [`Conn::call`](crate::Conn::call).
pub async fn cancel_leased(
    pattern: &impl Pattern,
    job: &JobId,
    leases: impl IntoIterator<Item = Bytes, IntoIter: Send>,
) -> Result<bool, Error> {
    for lease in leases {
        let bookkeeping =
            bookkeeping_with(pattern, std::iter::once(JobRef::Leased(&lease)));
        if bookkeeping.cancel(job, Some(&lease)).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn read_all(pattern: &impl Pattern) -> Result<Seen, Error> {
    let bookkeeping = pattern.bookkeeping();
    let mut seen = Seen::new(bookkeeping);
    seen.read_scheduled(bookkeeping).await?;
    pattern.audit_jobs(&mut seen).await?;
    seen.read_rest(bookkeeping).await?;
    Ok(seen)
}
