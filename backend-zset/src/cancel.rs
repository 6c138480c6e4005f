//! Ending a job that may be anywhere.
//!
//! Scheduled, leased and ranked jobs are found by their id. A ready job of normal
//! priority is one element among all in the list, and no index of them is kept: it
//! is looked for from the newest on, page by page, so cancelling it costs a reading
//! of the list.

use bytes::Bytes;
use relq_core::{Cancelled, Error, JobId, JobState, Operation};
use relq_redis::{
    command,
    entry::{Entry, id_of},
};

use crate::ZsetQueue;

/// Elements read at once.
const PAGE: usize = 500;

/// How often all places are searched: a job may be on its way from one that is still
/// to be searched to one that was.
const ROUNDS: usize = 2;

/// Ends the job wherever it is.
pub(crate) async fn cancel(queue: &ZsetQueue, job: &JobId) -> Result<Cancelled, Error> {
    for _ in 0..ROUNDS {
        if queue.store.bookkeeping.cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        if queue.store.cancel_ranked(job).await? {
            return Ok(Cancelled::Removed(JobState::Ready));
        }
        if cancel_leased(queue, job).await? {
            return Ok(Cancelled::Removed(JobState::Leased));
        }
        for list in [&queue.store.keys.ready, &queue.store.keys.handed] {
            if cancel_in_list(queue, list, job).await? {
                return Ok(Cancelled::Removed(JobState::Ready));
            }
        }
    }
    Ok(Cancelled::NotFound)
}

async fn cancel_leased(queue: &ZsetQueue, job: &JobId) -> Result<bool, Error> {
    let pattern = format!("*/{}", escape_glob(job.as_str()));
    for (member, lease) in queue.find_leases(Operation::Cancel, &pattern).await? {
        if lease.id == job.as_str().as_bytes()
            && queue.store.bookkeeping.cancel(job, Some(&member)).await?.is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// From the left, where pushes only shift what was not read yet to later pages, so
/// that nothing that stays in the list is missed.
async fn cancel_in_list(
    queue: &ZsetQueue,
    list: &str,
    job: &JobId,
) -> Result<bool, Error> {
    let is_it = |element: &Bytes| {
        Entry::is_marked(element) && id_of(element) == job.as_str().as_bytes()
    };
    let mut start = 0;
    loop {
        let mut cmd = command("LRANGE");
        cmd.arg(list).arg(start).arg(start + PAGE - 1);
        let elements = queue.store.conn.call(Operation::Cancel, &cmd).await?.list()?;
        let read = elements.len();
        for element in elements {
            let element = element.bytes()?;
            if is_it(&element) {
                return queue.store.cancel_listed(list, &element).await;
            }
        }
        if read < PAGE {
            return Ok(false);
        }
        start += PAGE;
    }
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
