//! Recovery: the work of reapers.
//!
//! First one script finds the expired leases. A second script gets their keys, checks
//! each lease again, and moves the jobs: between the two scripts a lease may have been
//! extended or settled, and another reaper may have recovered it (R12).
//!
//! No script of relq leaves a processing key without a lease. A client that uses the
//! original pattern does, by `RENAME item_5 processing_5`. If that client dies, no
//! lease names the job. So each call also scans one page of the database and gives each
//! such key a lease. When that lease expires, the job is recovered like any other.
//!
//! A client may also end a job by `DEL item_5`, or a time to live may end it. The job's
//! unique key, id and last error would then stay reserved for a job that no longer
//! exists (R16), so each call frees one page of each. A single script decides whether a
//! job still exists: between any two scripts, each existing job is ready, leased,
//! scheduled or dead.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use relq_core::{Error, outcome::Recovered};
use relq_redis::PartialEffect;

use crate::scripts::Store;

/// The length of the lease that recovery gives to a job whose key another client has
/// renamed to a processing key.
const ADOPTED_FOR: Duration = Duration::from_secs(60);

/// The position of the scan that finds processing keys without a lease and gives them
/// one.
#[derive(Debug)]
pub(crate) struct Adoption(Mutex<Bytes>);

impl Adoption {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Bytes::from_static(b"0")))
    }

    fn cursor(&self) -> Bytes {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives a lease to the processing keys without one on the next page of the
    /// database.
    async fn look_on(&self, store: &Store) -> Result<(), Error> {
        let (adopted, next) = store.adopt(&self.cursor(), ADOPTED_FOR).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
        if adopted > 0 {
            tracing::info!(adopted, "another client renamed jobs without a lease");
        }
        Ok(())
    }
}

/// The positions of the scans that search the unique keys, the ids and the errors for
/// records of deleted jobs.
#[derive(Debug)]
pub(crate) struct Freeing(Mutex<[Bytes; 3]>);

impl Freeing {
    pub(crate) fn new() -> Self {
        Self(Mutex::new([const { Bytes::from_static(b"0") }; 3]))
    }

    fn cursors(&self) -> [Bytes; 3] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Scans one page of the unique keys, of the ids and of the errors, and frees the
    /// records of jobs that were deleted.
    async fn look_on(&self, store: &Store) -> Result<(), Error> {
        let (freed, next) = store.free_deleted(&self.cursors()).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
        if freed > 0 {
            tracing::info!(freed, "another client deleted jobs");
        }
        Ok(())
    }
}

/// Recovers up to a page of expired leases, gives leases to jobs that other clients
/// have renamed, and frees the records of jobs that other clients have deleted.
pub(crate) async fn recover(
    store: &Store,
    adoption: &Adoption,
    freeing: &Freeing,
    page: u32,
) -> Result<Recovered, Error> {
    let (expired, adopted, freed) = tokio::join!(
        recover_expired(store, page),
        adoption.look_on(store),
        freeing.look_on(store),
    );
    let mut partial = PartialEffect::default();
    partial.add(&expired);
    partial.add(&adopted);
    partial.add(&freed);
    adopted.map_err(|error| partial.whole(error))?;
    freed.map_err(|error| partial.whole(error))?;
    expired.map_err(|error| partial.whole(error))
}

async fn recover_expired(store: &Store, page: u32) -> Result<Recovered, Error> {
    let overdue = store.overdue(page).await?;
    let mut recovered = Recovered {
        more: overdue.more,
        next_in: overdue.next_in,
        ..Recovered::default()
    };
    if !overdue.leases.is_empty() {
        let (requeued, buried, is_left) = store.recover(&overdue.leases).await?;
        let more = overdue.more || is_left;
        recovered = Recovered { requeued, buried, more, ..recovered };
    }
    Ok(recovered)
}
