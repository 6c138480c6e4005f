//! Ending a job that may be anywhere.
//!
//! Scheduled and ready jobs are found by their id at once. A leased one is looked for
//! among the leases, whose names hold more than the id, page by page.

use relq_core::{Cancelled, Error, JobId, JobState, Operation};

use crate::{KeyspaceQueue, keys::PROCESSING};

/// How often all places are searched: a job may be on its way from one that is still
/// to be searched to one that was.
const ROUNDS: usize = 2;

/// Ends the job wherever it is.
pub(crate) async fn cancel(
    queue: &KeyspaceQueue,
    job: &JobId,
) -> Result<Cancelled, Error> {
    for _ in 0..ROUNDS {
        if queue.store.bookkeeping.cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        if queue.store.cancel_ready(job).await? {
            return Ok(Cancelled::Removed(JobState::Ready));
        }
        if cancel_leased(queue, job).await? {
            return Ok(Cancelled::Removed(JobState::Leased));
        }
    }
    Ok(Cancelled::NotFound)
}

async fn cancel_leased(queue: &KeyspaceQueue, job: &JobId) -> Result<bool, Error> {
    let pattern = format!("{PROCESSING}{}_*", escape_glob(job.as_str()));
    for (key, lease) in queue.find_leases(Operation::Cancel, &pattern).await? {
        let declared = String::from_utf8_lossy(&key).into_owned();
        let bookkeeping = queue.store.bookkeeping.with_keys([declared]);
        if lease.id == job.as_str().as_bytes()
            && bookkeeping.cancel(job, Some(&key)).await?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn escape_glob(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for symbol in text.chars() {
        if r"*?[]^\-".contains(symbol) {
            escaped.push('\\');
        }
        escaped.push(symbol);
    }
    escaped
}
