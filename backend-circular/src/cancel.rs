//! Ending a job that is ready or leased.
//!
//! Ready and leased jobs are elements of the ring, which has no index. A cancel reads
//! the ring page by page, from the newest element on. A rotation may move an element
//! that was not read yet to the head, where the next search finds it.

use bytes::Bytes;
use relq_core::{Error, JobId, error::Operation, operator::JobState};
use relq_redis::entry::{Entry, id_of};

use crate::{element::InProcess, scripts::Store};

pub(crate) async fn cancel(
    store: &Store,
    job: &JobId,
) -> Result<Option<JobState>, Error> {
    let mut pages = store.bookkeeping.list_pages(&store.keys.circle, Operation::Cancel);
    while let Some(page) = pages.next_page().await? {
        for element in page.iter().filter(|element| is_of(element, job)) {
            // If the job ended or moved in the meantime, this returns `None` and the
            // search continues: the job may have another element.
            if let Some(word) = store.cancel_ringed(element).await? {
                return Ok(Some(state(&word)));
            }
        }
    }
    Ok(None)
}

fn is_of(element: &Bytes, job: &JobId) -> bool {
    let in_process = InProcess::read(element).map(|parts| parts.entry);
    let entry = in_process.as_ref().unwrap_or(element);
    Entry::is_marked(entry) && id_of(entry) == job.as_str().as_bytes()
}

fn state(word: &Bytes) -> JobState {
    if &word[..] == b"leased" { JobState::Leased } else { JobState::Ready }
}
