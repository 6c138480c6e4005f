//! Cancels a job in any state.
//!
//! A scheduled job is found by its id. Jobs in all other states are elements of lists,
//! and no index of these exists: the lists are searched page by page, from their newest
//! element on. So cancelling such a job costs a read of the lists.

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

/// A list to search for the job, and the state of the jobs in that list.
struct SearchedList {
    list: String,
    state: JobState,
    site: Site,
}

/// Cancels the job if it is scheduled, ready or leased. A dead job is not searched for.
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
    // The sessions are read after the search of the ready jobs, because a worker may
    // register and claim the job during that search.
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
    let mut pages = store.bookkeeping.search_pages(&searched.list);
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

/// Whether the element is the job. Stamps occur only in processing lists: in any other
/// list, an element that begins like a stamp is the payload of a client.
fn is_it(searched: &SearchedList, element: &Bytes, job: &JobId) -> bool {
    let lease = Lease::parse(element).filter(|_| searched.state == JobState::Leased);
    let entry = lease.map_or_else(|| element.clone(), |lease| lease.entry);
    Entry::is_marked(&entry) && id_of(&entry) == job.as_str().as_bytes()
}
