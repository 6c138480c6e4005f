//! Ending a job that is ready or leased.
//!
//! Ready and leased jobs are elements of the ring, which has no index. A cancel reads
//! the ring page by page, from the newest element on. A rotation may move an element
//! that was not read yet to the head, where the next search finds it.

use std::collections::HashSet;

use bytes::Bytes;
use relq_core::{Error, JobId, operator::JobState};
use relq_redis::{
    entry::{Entry, id_of},
    pattern::CancelSearch,
};

use crate::{element::InProcess, scripts::Store};

/// The maximum number of times that one search reads the ring. The search reads the
/// ring again only if the job moved meanwhile, and no job moves this often.
const READINGS: usize = 100;

pub(crate) async fn cancel(store: &Store, job: &JobId) -> Result<CancelSearch, Error> {
    let mut ended = HashSet::new();
    for _ in 0..READINGS {
        let came_to = cancel_in_ring(store, job, &mut ended).await?;
        if came_to != CancelSearch::Missed {
            return Ok(came_to);
        }
    }
    Ok(CancelSearch::Missed)
}

/// Reads the ring once, and ends the job if its element is found. `ended` holds
/// elements of ended leases, which the search skips: they stay in the ring until a
/// rotation reaches them, and no job ever has one of them again.
async fn cancel_in_ring(
    store: &Store,
    job: &JobId,
    ended: &mut HashSet<Bytes>,
) -> Result<CancelSearch, Error> {
    let mut came_to = CancelSearch::NotSeen;
    let mut pages = store.bookkeeping.search_pages(&store.keys.circle);
    while let Some(page) = pages.next_page().await? {
        for element in page.into_iter().filter(|element| is_of(element, job)) {
            if ended.contains(&element) {
                continue;
            }
            if let Some(word) = store.cancel_ringed(&element).await? {
                return Ok(CancelSearch::Removed(state(&word)));
            }
            // The job ended or moved in the meantime. It may have another element, so
            // the search continues.
            came_to = CancelSearch::Missed;
            if InProcess::read(&element).is_some() {
                ended.insert(element);
            }
        }
    }
    Ok(came_to)
}

fn is_of(element: &Bytes, job: &JobId) -> bool {
    let in_process = InProcess::read(element).map(|parts| parts.entry);
    let entry = in_process.as_ref().unwrap_or(element);
    Entry::is_marked(entry) && id_of(entry) == job.as_str().as_bytes()
}

fn state(word: &Bytes) -> JobState {
    if &word[..] == b"leased" { JobState::Leased } else { JobState::Ready }
}
