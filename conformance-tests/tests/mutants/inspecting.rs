//! Overrides of the calls that find and list jobs, each with one bug.

use async_trait::async_trait;
use bytes::Bytes;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    operator::{
        JobLookup, JobParts, JobRecord, JobState, Page, PageCursor, PeekOrder,
        PeekRequest,
    },
    *,
};

/// Looks for a leased job by a pattern: a star in the id stands for any text.
pub(crate) struct TakesAnIdForAPattern;

#[async_trait]
impl Override for TakesAnIdForAPattern {
    async fn job(&self, right: &Right, job: &JobId) -> Result<JobLookup, Error> {
        let found = right.inspector().job(job).await?;
        let Some((start, end)) = job.as_str().split_once('*') else { return Ok(found) };
        if matches!(found, JobLookup::Stored(_)) {
            return Ok(found);
        }
        let most = right.capabilities().limits.max_jobs_per_call;
        let leased = right.peek(&PeekRequest::new(JobState::Leased, most)).await?;
        let fits =
            |id: &JobId| id.as_str().starts_with(start) && id.as_str().ends_with(end);
        let named =
            leased.jobs.into_iter().find(|one| one.id.as_ref().is_some_and(fits));
        Ok(named.map_or(found, |one| {
            JobLookup::Stored(Box::new(JobRecord::new(one, Vec::new())))
        }))
    }
}

/// Lists the leased jobs as served by their ranks: a page begins behind as many jobs as
/// were shown before.
pub(crate) struct ListsLeasesByRank;

#[async_trait]
impl Override for ListsLeasesByRank {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let is_first = ask.after.is_none();
        let rank = ask.after.as_ref().and_then(rank_in);
        let is_foreign = rank.is_none() && !is_first;
        let is_of_leases =
            ask.state == JobState::Leased && ask.order == PeekOrder::AsServed;
        if !is_of_leases || is_foreign {
            return right.peek(ask).await;
        }
        let mut all = ask.clone();
        (all.after, all.limit) = (None, right.capabilities().limits.max_jobs_per_call);
        let (rank, limit) = (rank.unwrap_or(0), ask.limit.get() as usize);
        let listed = right.peek(&all).await?.jobs;
        let is_more = listed.len() > rank + limit;
        let jobs = listed.into_iter().skip(rank).take(limit).collect();
        let cursor = Bytes::from(format!("rank {}", rank + limit));
        let mut page = Page::default();
        (page.jobs, page.next) = (jobs, is_more.then_some(PageCursor(cursor)));
        Ok(page)
    }
}

fn rank_in(cursor: &PageCursor) -> Option<usize> {
    std::str::from_utf8(&cursor.0).ok()?.strip_prefix("rank ")?.parse().ok()
}

/// Lists the jobs as served, whatever order was asked for.
pub(crate) struct KnowsOneOrder;

#[async_trait]
impl Override for KnowsOneOrder {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut ask = ask.clone();
        ask.order = PeekOrder::AsServed;
        right.peek(&ask).await
    }
}

/// Leaves the errors out of the outlines, too.
pub(crate) struct OutlinesHaveNoErrors;

#[async_trait]
impl Override for OutlinesHaveNoErrors {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        if ask.parts == JobParts::Outline {
            page.jobs.iter_mut().for_each(|job| job.last_error = None);
        }
        Ok(page)
    }
}
