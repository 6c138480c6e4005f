//! Ending a job that is ready or leased.
//!
//! Leased and ranked jobs are found by their id. Ready jobs of normal priority are
//! elements of one list without an index, so a cancel reads the list page by page, from
//! the newest element on.

use bytes::Bytes;
use relq_core::{
    Error, JobId, environment::Timestamp, error::Operation, operator::JobState,
};
use relq_redis::{
    entry::{Entry, id_of},
    escape_glob,
    pattern::{CancelSearch, cancel_leased},
};

use crate::{Zset, lease::Lease, scripts::Store};

pub(crate) async fn cancel(queue: &Zset, job: &JobId) -> Result<CancelSearch, Error> {
    let store = &queue.store;
    if store.cancel_ranked(job).await? {
        return Ok(CancelSearch::Removed(JobState::Ready));
    }
    let leases = leases_of(store, Operation::Cancel, job).await?;
    let leases = leases.into_iter().map(|(name, _)| name);
    let leased = cancel_leased(queue, job, leases).await?;
    if leased != CancelSearch::NotSeen {
        return Ok(leased);
    }
    for list in [&store.keys.ready, &store.keys.handed] {
        let listed = cancel_in_list(store, list, job).await?;
        if listed != CancelSearch::NotSeen {
            return Ok(listed);
        }
    }
    Ok(CancelSearch::NotSeen)
}

/// The names of the leases of a job, and when each ends.
pub(crate) async fn leases_of(
    store: &Store,
    operation: Operation,
    job: &JobId,
) -> Result<Vec<(Bytes, Timestamp)>, Error> {
    let glob = format!("*/{}", escape_glob(job.as_str()));
    let id_of = |name: &Bytes| Some(Lease::parse(name)?.id);
    let leased = &store.keys.leased;
    store.bookkeeping.leases_of_job(operation, leased, job, &glob, id_of).await
}

async fn cancel_in_list(
    store: &Store,
    list: &str,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    let is_it = |element: &&Bytes| {
        Entry::is_marked(element) && id_of(element) == job.as_str().as_bytes()
    };
    let mut pages = store.bookkeeping.search_pages(list);
    while let Some(page) = pages.next_page().await? {
        if let Some(element) = page.iter().find(is_it) {
            let is_removed = store.cancel_listed(list, element).await?;
            return Ok(CancelSearch::of_seen(JobState::Ready, is_removed));
        }
    }
    Ok(CancelSearch::NotSeen)
}
