//! Checks that each job is in exactly one place (R23).

use bytes::Bytes;
use relq_core::{Error, error::Operation};
use relq_redis::bookkeeping::{Scanned, Seen};

use crate::{
    config::ForeignKeys, keys::id_of_item, lease, pick::Sweep, scripts::Store,
};

/// Adds every ready and leased job to `seen`. Reports processing keys without a lease,
/// and also foreign keys if the configuration does not tolerate them.
pub(crate) async fn read(
    store: &Store,
    foreign_keys: ForeignKeys,
    seen: &mut Seen,
) -> Result<(), Error> {
    let mut sweep = Sweep::of_all();
    while let Some(page) = sweep.next_page(store, Operation::Audit).await? {
        for item in &page.items {
            seen.job(&id_of_item(item), b"").await?;
        }
        for key in &page.orphans {
            seen.problem(&format!("{} has no lease", text(key))).await?;
        }
        if foreign_keys == ForeignKeys::Refused {
            for key in &page.named {
                let key = text(key);
                let problem = format!("the key {key} does not belong to the queue");
                seen.problem(&problem).await?;
            }
        }
    }
    read_leased(store, seen).await
}

/// Checks that every lease has its processing key.
async fn read_leased(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut pages =
        store.bookkeeping.scan_pages(Scanned::SortedSet, &store.keys.leased);
    while let Some(page) = pages.next_page().await? {
        let leases: Vec<_> = page.into_iter().map(|(lease, _)| lease).collect();
        for (lease, is_there) in leases.iter().zip(store.are_there(&leases).await?) {
            seen.job(&lease::id_of(lease), lease).await?;
            if !is_there {
                let lease = text(lease);
                seen.problem(&format!("the lease {lease} has no job")).await?;
            }
        }
    }
    Ok(())
}

fn text(key: &Bytes) -> String {
    String::from_utf8_lossy(key).into_owned()
}
