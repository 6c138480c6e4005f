//! Cancels a job that is ready or leased.
//!
//! A leased job is found by its id. Ready jobs are entries of streams, which have no
//! index by job id. So a cancel reads the streams page by page, from the oldest entry
//! on.

use bytes::Bytes;
use relq_core::{
    Error, JobId, environment::Timestamp, error::Operation, operator::JobState,
};
use relq_redis::{
    bookkeeping::PageSize,
    escape_glob,
    pattern::{CancelSearch, cancel_leased},
};

use crate::{Streams, keys::Stream, lease::Lease, scripts::Store, streams::Range};

pub(crate) async fn cancel(
    queue: &Streams,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    let store = &queue.store;
    let leases = leases_of(store, Operation::Cancel, job).await?;
    let leases = leases.into_iter().map(|(name, _)| name);
    let leased = cancel_leased(queue, job, leases).await?;
    if leased != CancelSearch::NotSeen {
        return Ok(leased);
    }
    for stream in store.streams(Operation::Cancel).await? {
        let ready = cancel_in_stream(store, &stream, job).await?;
        if ready != CancelSearch::NotSeen {
            return Ok(ready);
        }
    }
    Ok(CancelSearch::NotSeen)
}

/// The names of the leases of a job, and when each ends.
pub(crate) async fn leases_of(
    store: &Store,
    operation: Operation,
    job: &JobId,
) -> Result<Vec<(Bytes, Timestamp)>, Error> {
    let glob = format!("*/{}", escape_glob(job.as_str()));
    let id_of = |name: &Bytes| Some(Lease::parse(name)?.id);
    let leased = &store.keys.leased;
    store.bookkeeping.leases_of_job(operation, leased, job, &glob, id_of).await
}

async fn cancel_in_stream(
    store: &Store,
    stream: &Stream,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    let mut came_to = CancelSearch::NotSeen;
    let (mut after, mut size) = (Bytes::new(), PageSize::of_payloads());
    loop {
        let most = size.count();
        let range = Range::oldest_after(&after, most);
        let page = store.read_stream(Operation::Cancel, stream, range).await?;
        let is_last = page.entries.len() < most;
        size.adapt(page.bytes());
        for found in page.entries {
            if found.is_of(job.as_str().as_bytes()) {
                if store.cancel_ready(stream, &found.id).await? {
                    return Ok(CancelSearch::Removed(JobState::Ready));
                }
                came_to = CancelSearch::Missed;
            }
            after = found.id;
        }
        if is_last {
            return Ok(came_to);
        }
    }
}
