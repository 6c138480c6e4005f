//! Cancels a job in any state.
//!
//! A scheduled job is found by its id. All others are elements of lists, and no index
//! of them is kept. A job is searched for from the newest element on, page by page, so
//! cancelling it costs a read of the lists.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error, JobId,
    error::Operation,
    operator::{Cancelled, JobState},
};
use relq_redis::{
    entry::{Entry, id_of},
    pattern::{CancelSearch, cancel_by_search},
};

use crate::{lease::Lease, scripts::Store, session::Site};

/// A list, and the state of the jobs in it.
struct SearchedList {
    list: String,
    state: JobState,
    site: Site,
}

/// Cancels the job in any state.
pub(crate) async fn cancel(store: &Store, job: &JobId) -> Result<Cancelled, Error> {
    let at = || store.conn.at(Operation::Cancel);
    cancel_by_search(at, || search(store, job).boxed()).await
}

async fn search(store: &Store, job: &JobId) -> Result<CancelSearch, Error> {
    if store.bookkeeping.cancel(job, None).await?.is_some() {
        return Ok(CancelSearch::Removed(JobState::Scheduled));
    }
    for list in [&store.keys.ready, &store.keys.handed] {
        let state = JobState::Ready;
        let list = SearchedList { list: list.clone(), state, site: Site::Shared };
        let came_to = cancel_in(store, &list, job).await?;
        if came_to != CancelSearch::NotSeen {
            return Ok(came_to);
        }
    }
    // The sessions are read after the ready jobs: a worker may have registered and
    // claimed the job in between.
    for site in store.sites(Operation::Cancel).await? {
        let list = store.keys.list(&site);
        let list = SearchedList { list, state: JobState::Leased, site };
        let came_to = cancel_in(store, &list, job).await?;
        if came_to != CancelSearch::NotSeen {
            return Ok(came_to);
        }
    }
    Ok(CancelSearch::NotSeen)
}

async fn cancel_in(
    store: &Store,
    searched: &SearchedList,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    let mut pages = store.bookkeeping.list_pages(&searched.list, Operation::Cancel);
    while let Some(page) = pages.next_page().await? {
        if let Some(element) = page.iter().find(|element| is_it(searched, element, job))
        {
            let SearchedList { list, state, site } = searched;
            let is_removed = store.cancel_listed(list, site, element).await?;
            return Ok(CancelSearch::of_seen(*state, is_removed));
        }
    }
    Ok(CancelSearch::NotSeen)
}

/// In a list that is not a processing list, an element that looks like a stamp is the
/// payload of a client.
fn is_it(searched: &SearchedList, element: &Bytes, job: &JobId) -> bool {
    let lease = Lease::parse(element).filter(|_| searched.state == JobState::Leased);
    let entry = lease.map_or_else(|| element.clone(), |lease| lease.entry);
    Entry::is_marked(&entry) && id_of(&entry) == job.as_str().as_bytes()
}
