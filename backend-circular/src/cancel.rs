//! Ending a job that may be anywhere.
//!
//! A scheduled job is found by its id. All others are elements of the ring, and no
//! index of them is kept: they are looked for from the newest on, page by page, so
//! cancelling one costs a reading of the ring.

use bytes::Bytes;
use relq_core::{Cancelled, Error, JobId, JobState, Operation};
use relq_redis::{
    command,
    entry::{Entry, id_of},
};

use crate::{CircularQueue, element::InProcess};

/// Elements read at once.
const PAGE: usize = 500;

/// How often the ring is searched: an element may come round behind the search, to the
/// head, where the next one begins.
const ROUNDS: usize = 2;

/// Ends the job wherever it is.
pub(crate) async fn cancel(
    queue: &CircularQueue,
    job: &JobId,
) -> Result<Cancelled, Error> {
    for _ in 0..ROUNDS {
        if queue.store.bookkeeping.cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        if let Some(state) = cancel_in_ring(queue, job).await? {
            return Ok(Cancelled::Removed(state));
        }
    }
    Ok(Cancelled::NotFound)
}

/// From the left, where pushes and turns only shift what was not read yet to later
/// pages.
async fn cancel_in_ring(
    queue: &CircularQueue,
    job: &JobId,
) -> Result<Option<JobState>, Error> {
    let store = &queue.store;
    let mut start = 0;
    loop {
        let mut cmd = command("LRANGE");
        cmd.arg(&store.keys.circle).arg(start).arg(start + PAGE - 1);
        let elements = store.conn.call(Operation::Cancel, &cmd).await?.list()?;
        let read = elements.len();
        for element in elements {
            let element = element.bytes()?;
            if !is_of(&element, job) {
                continue;
            }
            // It may be over: the job itself is then elsewhere.
            if let Some(word) = store.cancel_ringed(&element).await? {
                return Ok(Some(state(&word)));
            }
        }
        if read < PAGE {
            return Ok(None);
        }
        start += PAGE;
    }
}

fn is_of(element: &Bytes, job: &JobId) -> bool {
    let in_process = InProcess::read(element).map(|parts| parts.entry);
    let entry = in_process.as_ref().unwrap_or(element);
    Entry::is_marked(entry) && id_of(entry) == job.as_str().as_bytes()
}

fn state(word: &Bytes) -> JobState {
    if &word[..] == b"leased" { JobState::Leased } else { JobState::Ready }
}
