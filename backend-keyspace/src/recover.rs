//! Recovery: what reapers do.
//!
//! First what has ended is looked up, then a script that is told the keys looks again and
//! moves them: between the two a lease may have been extended or settled, and another
//! reaper may have been first (R12).
//!
//! No script leaves a processing key without a lease. A client of the pattern's author's
//! kind makes one, by `RENAME item_5 processing_5`; if it dies, nobody else would know.
//! So each call also looks at a page of the database, round and round, and gives what it
//! finds there a lease, at whose end the job is recovered like any other.
//!
//! A client may also end a job by `DEL item_5`, or let it vanish by a time to live. What the
//! job had bound (its unique key, its id, its last error) would stay bound to no job (R16),
//! so each call frees it for a page of them. One script decides: between any two scripts a
//! job that lives is ready, leased, scheduled or dead.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use relq_core::{Error, Recovered};
use relq_redis::PartialEffect;

use crate::{Keyspace, scripts::Store};

/// How long a processing key of some other client is left alone after it was seen.
const ADOPTED_FOR: Duration = Duration::from_secs(60);

/// Where the look for processing keys without a lease goes on.
#[derive(Debug)]
pub(crate) struct Adoption(Mutex<Bytes>);

impl Adoption {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Bytes::from_static(b"0")))
    }

    fn cursor(&self) -> Bytes {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the next page.
    async fn look_on(&self, store: &Store) -> Result<(), Error> {
        let (adopted, next) = store.adopt(&self.cursor(), ADOPTED_FOR).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
        if adopted > 0 {
            tracing::info!(adopted, "some other client renamed jobs without a lease");
        }
        Ok(())
    }
}

/// Where the look for deleted jobs goes on: in the unique keys, the ids and the errors.
#[derive(Debug)]
pub(crate) struct Freeing(Mutex<[Bytes; 3]>);

impl Freeing {
    pub(crate) fn new() -> Self {
        Self(Mutex::new([const { Bytes::from_static(b"0") }; 3]))
    }

    fn cursors(&self) -> [Bytes; 3] {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Looks at the next page of each.
    async fn look_on(&self, store: &Store) -> Result<(), Error> {
        let (freed, next) = store.free_deleted(&self.cursors()).await?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = next;
        if freed > 0 {
            tracing::info!(freed, "some other client deleted jobs");
        }
        Ok(())
    }
}

impl Keyspace {
    /// Recovers up to a page of ended leases, and looks at a page of what other clients
    /// may have done.
    pub(crate) async fn recover_page(&self, page: u32) -> Result<Recovered, Error> {
        let (expired, adopted, freed) = tokio::join!(
            recover_expired(&self.store, page),
            self.adoption.look_on(&self.store),
            self.freeing.look_on(&self.store),
        );
        let mut partial = PartialEffect::default();
        partial.add(&expired);
        partial.add(&adopted);
        partial.add(&freed);
        adopted.map_err(|error| partial.whole(error))?;
        freed.map_err(|error| partial.whole(error))?;
        expired.map_err(|error| partial.whole(error))
    }
}

async fn recover_expired(store: &Store, page: u32) -> Result<Recovered, Error> {
    let overdue = store.overdue(page).await?;
    let mut recovered = Recovered {
        more: overdue.more,
        next_in: overdue.next_in,
        ..Recovered::default()
    };
    if !overdue.leases.is_empty() {
        let (requeued, buried) = store.recover(&overdue.leases).await?;
        recovered = Recovered { requeued, buried, ..recovered };
    }
    Ok(recovered)
}
