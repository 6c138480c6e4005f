//! The calls of an operator on a queue of any pattern.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, future::BoxFuture};
use relq_core::{
    Error, JobId, Operator, Stats,
    capabilities::Capability,
    error::{ErrorContext, Operation},
    operator::{
        Audit, Cancelled, InspectQueue, JobState, Page, PeekRequest, Redriven,
        RestoreQueue, Selection,
    },
};

use super::{RedisQueue, bookkeeping_with};
use crate::{
    all_steps,
    bookkeeping::{self, Seen},
    pattern::{JobRef, Pattern},
};

/// The number of searches in a row that must not find a job before it counts as not
/// found. During a search, the job may move from a place that was not searched yet to
/// one that was; the next search finds it there.
const BLIND_SEARCHES: usize = 2;

/// The maximum number of searches of one cancel. Workers may move the job during a
/// search, but a job that moves during every one of 100 searches does not occur.
const SEARCHES: usize = 100;

#[async_trait]
impl<P: Pattern> Operator for RedisQueue<P> {
    async fn stats(&self) -> Result<Stats, Error> {
        self.pattern.stats().await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        P::capabilities().check_peek(ask)?;
        match ask.state {
            JobState::Ready | JobState::Leased => self.pattern.peek(ask).await,
            JobState::Scheduled | JobState::Dead => {
                self.pattern.bookkeeping().peek_kept(ask).await
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
        let cancelling = async {
            let cancelled = cancel(&*self.pattern, job).await?;
            if let Cancelled::Removed(_) = cancelled {
                self.pattern.follow_up(Operation::Cancel).await;
            }
            Ok(cancelled)
        };
        all_steps(Operation::Cancel, cancelling).await
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

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        P::capabilities().supports(Capability::Inspect).then_some(self as _)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        P::capabilities().supports(Capability::Restore).then_some(self as _)
    }
}

/// Ends a job that is scheduled, ready or leased. A dead job is not searched for.
async fn cancel(pattern: &impl Pattern, job: &JobId) -> Result<Cancelled, Error> {
    let at = || pattern.bookkeeping().conn.at(Operation::Cancel);
    cancel_by_search(at, || search(pattern, job).boxed()).await
}

async fn search(pattern: &impl Pattern, job: &JobId) -> Result<CancelSearch, Error> {
    if pattern.bookkeeping().cancel(job, None).await?.is_some() {
        return Ok(CancelSearch::Removed(JobState::Scheduled));
    }
    pattern.cancel(job).await
}

/// The result of one search for a job to cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelSearch {
    /// The search found the job in this state and removed it.
    Removed(JobState),
    /// The search found the job, but the job moved or ended before it could be removed.
    Missed,
    /// The search did not find the job.
    NotSeen,
}

impl CancelSearch {
    /// Returns the result of a search that found the job in `state`: removed, or
    /// missed.
    #[must_use]
    pub const fn of_seen(state: JobState, is_removed: bool) -> Self {
        if is_removed { Self::Removed(state) } else { Self::Missed }
    }
}

/// Repeats `search`, which looks at all places where the job may be, until the job is
/// removed or was not found twice in a row. Workers may move the job from place to
/// place meanwhile. An existing job is missed only if it moves three times during the
/// two searches: in each search from a place that was not searched yet to one that was,
/// and back in between.
///
/// # Errors
/// The errors of `search`, and [`Error::Unavailable`] at `at` when every search found
/// the job but could not remove it.
pub async fn cancel_by_search<'a>(
    at: impl FnOnce() -> ErrorContext,
    mut search: impl FnMut() -> BoxFuture<'a, Result<CancelSearch, Error>>,
) -> Result<Cancelled, Error> {
    let mut blind_searches = 0;
    for _ in 0..SEARCHES {
        match search().await? {
            CancelSearch::Removed(state) => return Ok(Cancelled::Removed(state)),
            CancelSearch::Missed => blind_searches = 0,
            CancelSearch::NotSeen => blind_searches += 1,
        }
        if blind_searches == BLIND_SEARCHES {
            return Ok(Cancelled::NotFound);
        }
    }
    let source = "the job moves again and again: pause the queue, and try again";
    Err(Error::Unavailable { at: at(), source: source.into() })
}

/// Ends a leased job if one of `leases` still holds it. `leases` are the leases of jobs
/// with this id, in the form that scripts take.
///
/// # Errors
/// The errors of [`Conn::call`](crate::Conn::call).
pub async fn cancel_leased(
    pattern: &impl Pattern,
    job: &JobId,
    leases: impl IntoIterator<Item = Bytes, IntoIter: Send>,
) -> Result<CancelSearch, Error> {
    let mut came_to = CancelSearch::NotSeen;
    for lease in leases {
        let bookkeeping =
            bookkeeping_with(pattern, std::iter::once(JobRef::Leased(&lease)));
        if bookkeeping.cancel(job, Some(&lease)).await?.is_some() {
            return Ok(CancelSearch::Removed(JobState::Leased));
        }
        came_to = CancelSearch::Missed;
    }
    Ok(came_to)
}

async fn read_all(pattern: &impl Pattern) -> Result<Seen, Error> {
    let bookkeeping = pattern.bookkeeping();
    let mut seen = Seen::new(bookkeeping);
    seen.read_scheduled(bookkeeping).await?;
    pattern.audit_jobs(&mut seen).await?;
    seen.read_rest(bookkeeping).await?;
    Ok(seen)
}
