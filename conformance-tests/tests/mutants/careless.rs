//! Overrides that accept invalid arguments, or return wrong pages.

use std::time::Duration;

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    error::{ErrorContext, Operation},
    limits::MAX_DURATION,
    operator::{JobState, Page, PageCursor, PeekRequest, StateDetail},
    outcome::Pushed,
    *,
};

/// Replaces a duration that is too long or too short by the nearest allowed one,
/// instead of refusing it.
pub(crate) struct CutsTimes;

fn cut(time: Duration) -> Duration {
    time.clamp(Duration::from_millis(1), MAX_DURATION)
}

#[async_trait]
impl Override for CutsTimes {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            job.delay = job.delay.min(MAX_DURATION);
            job.expires_in = job.expires_in.map(cut);
            job.lease = job.lease.map(cut);
        }
        right.push(&jobs, token).await
    }

    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let mut ask = ask.clone();
        ask.lease = cut(ask.lease);
        if ask.wait > MAX_DURATION {
            ask.wait = Duration::ZERO;
        }
        right.claim(&ask).await
    }
}

/// Refuses calls with an empty list of jobs, which must succeed.
pub(crate) struct RefusesNothing;

fn refuse(operation: Operation) -> Error {
    let at = ErrorContext { backend: "mutant", operation };
    Error::Invalid { at, reason: "there is nothing to do".to_owned() }
}

#[async_trait]
impl Override for RefusesNothing {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        if jobs.is_empty() {
            return Err(refuse(Operation::Push));
        }
        right.push(jobs, token).await
    }
}

/// Leaves out the last job of each page of a list, and reports after an empty page that
/// more jobs follow.
pub(crate) struct LosesSight;

#[async_trait]
impl Override for LosesSight {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        if page.jobs.pop().is_none() && ask.after.is_none() {
            page.next = Some(PageCursor(Bytes::from_static(b"0")));
        }
        Ok(page)
    }
}

/// Lists the leased jobs behind the first 300 as ready, too, on the last page.
pub(crate) struct ListsLeasedAsReady;

#[async_trait]
impl Override for ListsLeasedAsReady {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        if ask.state == JobState::Ready && page.next.is_none() {
            let leased = PeekRequest::new(JobState::Leased, ask.limit);
            page.jobs.extend(right.peek(&leased).await?.jobs.into_iter().skip(300));
        }
        Ok(page)
    }
}

/// Lists no ready job that has a unique key.
pub(crate) struct HidesUnique;

#[async_trait]
impl Override for HidesUnique {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        page.jobs.retain(|job| ask.state != JobState::Ready || job.unique.is_none());
        Ok(page)
    }
}

/// Lists each lease as if its last heartbeat had begun it.
pub(crate) struct BeginsAnew;

#[async_trait]
impl Override for BeginsAnew {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        for job in &mut page.jobs {
            if let StateDetail::Leased { since, until, .. } = &mut job.detail {
                *since = *until;
            }
        }
        Ok(page)
    }
}

/// Reports one finished job too many in the stats.
pub(crate) struct CountsFromOne;

#[async_trait]
impl Override for CountsFromOne {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let mut stats = right.stats().await?;
        stats.finished += 1;
        Ok(stats)
    }
}
