//! Ending a job that is ready or leased.
//!
//! A ready job is found by its id. For a leased job, the names of the leases are
//! searched page by page, because a name holds more than the job's id.

use bytes::Bytes;
use relq_core::{Error, JobId, error::Operation, operator::JobState};
use relq_redis::{
    escape_glob,
    pattern::{CancelSearch, cancel_leased},
};

use crate::{Keyspace, keys::PROCESSING, lease::Lease, scripts::Store};

pub(crate) async fn cancel(
    queue: &Keyspace,
    job: &JobId,
) -> Result<CancelSearch, Error> {
    if queue.store.cancel_ready(job).await? {
        return Ok(CancelSearch::Removed(JobState::Ready));
    }
    let leases = leases_of(&queue.store, job).await?;
    cancel_leased(queue, job, leases).await
}

async fn leases_of(store: &Store, job: &JobId) -> Result<Vec<Bytes>, Error> {
    let glob = format!("{PROCESSING}{}_*", escape_glob(job.as_str()));
    let id_of = |name: &Bytes| Some(Lease::parse(name)?.id);
    let (operation, leased) = (Operation::Cancel, &store.keys.leased);
    let found = store.bookkeeping.leases_of_job(operation, leased, job, &glob, id_of);
    Ok(found.await?.into_iter().map(|(name, _)| name).collect())
}
