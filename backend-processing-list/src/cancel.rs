//! Cancels a job in any state.
//!
//! A scheduled job is found by its id. All others are elements of lists, and no index
//! of them is kept. A job is searched for from the newest element on, page by page, so
//! cancelling it costs a read of the lists.

use bytes::Bytes;
use relq_core::{
    Error, JobId,
    error::Operation,
    operator::{Cancelled, JobState},
};
use relq_redis::entry::{Entry, id_of};

use crate::{lease::Lease, scripts::Store, session::Site};

/// How often all lists are searched. A job may move, during a search, from a list that
/// was not searched yet to one that was; the second search finds it.
const ROUNDS: usize = 2;

/// A list, and the state of the jobs in it.
struct SearchedList {
    list: String,
    state: JobState,
    site: Site,
}

/// Cancels the job in any state.
pub(crate) async fn cancel(store: &Store, job: &JobId) -> Result<Cancelled, Error> {
    for _ in 0..ROUNDS {
        if store.bookkeeping.cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        for searched in lists_of(store).await? {
            if cancel_in(store, &searched, job).await? {
                return Ok(Cancelled::Removed(searched.state));
            }
        }
    }
    Ok(Cancelled::NotFound)
}

async fn lists_of(store: &Store) -> Result<Vec<SearchedList>, Error> {
    let ready = [&store.keys.ready, &store.keys.handed].map(|list| SearchedList {
        list: list.clone(),
        state: JobState::Ready,
        site: Site::Shared,
    });
    let sites = store.sites(Operation::Cancel).await?.into_iter();
    let leased = sites.map(|site| SearchedList {
        list: store.keys.list(&site),
        state: JobState::Leased,
        site,
    });
    Ok(ready.into_iter().chain(leased).collect())
}

async fn cancel_in(
    store: &Store,
    searched: &SearchedList,
    job: &JobId,
) -> Result<bool, Error> {
    let mut pages = store.bookkeeping.list_pages(&searched.list, Operation::Cancel);
    while let Some(page) = pages.next_page().await? {
        if let Some(element) = page.iter().find(|element| is_it(searched, element, job))
        {
            return store.cancel_listed(&searched.list, &searched.site, element).await;
        }
    }
    Ok(false)
}

/// In a list that is not a processing list, an element that looks like a stamp is the
/// payload of a client.
fn is_it(searched: &SearchedList, element: &Bytes, job: &JobId) -> bool {
    let lease = Lease::parse(element).filter(|_| searched.state == JobState::Leased);
    let entry = lease.map_or_else(|| element.clone(), |lease| lease.entry);
    Entry::is_marked(&entry) && id_of(&entry) == job.as_str().as_bytes()
}
