//! Cancels a job that is ready or leased.

use bytes::Bytes;
use relq_core::{Error, JobId, error::Operation, operator::JobState};
use relq_redis::{
    entry::{Entry, id_of},
    pattern::{CancelSearch, cancel_leased},
};

use crate::{TimerBuckets, lease::Lease, scripts::Store};

/// Searches for a job and cancels it. A scan of the lease names finds a leased job, and
/// reading the list finds a ready job.
pub(crate) async fn cancel(
    queue: &TimerBuckets,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    let leased = cancel_leased(queue, job, leases_of(&queue.store, job).await?).await?;
    match leased {
        CancelSearch::NotSeen => cancel_ready(&queue.store, job).await,
        seen => Ok(seen),
    }
}

async fn leases_of(store: &Store, job: &JobId) -> Result<Vec<Bytes>, Error> {
    let names =
        store.leases(Operation::Cancel).await?.into_iter().map(|(_, name)| name);
    let is_of_job =
        |name: &Bytes| Lease::parse(name).is_some_and(|lease| lease.id == job.as_str());
    Ok(names.filter(is_of_job).collect())
}

async fn cancel_ready(store: &Store, job: &JobId) -> Result<CancelSearch, Error> {
    let is_it = |element: &&Bytes| {
        Entry::is_marked(element) && id_of(element) == job.as_str().as_bytes()
    };
    let mut pages = store.bookkeeping.search_pages(&store.keys.ready);
    while let Some(page) = pages.next_page().await? {
        if let Some(element) = page.iter().find(is_it) {
            let is_removed = store.cancel_listed(element).await?;
            return Ok(CancelSearch::of_seen(JobState::Ready, is_removed));
        }
    }
    Ok(CancelSearch::NotSeen)
}
