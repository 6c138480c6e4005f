//! Ending a job that may be anywhere.
//!
//! Scheduled and leased jobs are found by their id. A ready one is an entry among all
//! of a stream, and no index of them is kept: it is looked for from the oldest on, page
//! by page, so cancelling it costs a reading of the streams.

use bytes::Bytes;
use relq_core::{Cancelled, Error, JobId, JobState, Operation};

use crate::{StreamQueue, keys::Stream, streams::PAGE};

/// How often all places are searched: a job may be on its way from one that is still
/// to be searched to one that was.
const ROUNDS: usize = 2;

/// Ends the job wherever it is.
pub(crate) async fn cancel(
    queue: &StreamQueue,
    job: &JobId,
) -> Result<Cancelled, Error> {
    for _ in 0..ROUNDS {
        if queue.store.bookkeeping.cancel(job, None).await?.is_some() {
            return Ok(Cancelled::Removed(JobState::Scheduled));
        }
        if cancel_leased(queue, job).await? {
            return Ok(Cancelled::Removed(JobState::Leased));
        }
        for stream in queue.store.streams(Operation::Cancel).await? {
            if cancel_in_stream(queue, &stream, job).await? {
                return Ok(Cancelled::Removed(JobState::Ready));
            }
        }
    }
    Ok(Cancelled::NotFound)
}

async fn cancel_leased(queue: &StreamQueue, job: &JobId) -> Result<bool, Error> {
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

async fn cancel_in_stream(
    queue: &StreamQueue,
    stream: &Stream,
    job: &JobId,
) -> Result<bool, Error> {
    let mut after = Bytes::new();
    loop {
        let page =
            queue.store.read_stream(Operation::Cancel, stream, &after, PAGE).await?;
        let is_last = page.entries.len() < PAGE;
        for found in page.entries {
            if found.is_of(job.as_str().as_bytes())
                && queue.store.cancel_ready(stream, &found.id).await?
            {
                return Ok(true);
            }
            after = found.id;
        }
        if is_last {
            return Ok(false);
        }
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
