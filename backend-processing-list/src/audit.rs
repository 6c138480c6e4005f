//! Checks that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use bytes::Bytes;
use relq_core::{Error, error::Operation, operator::Audit};
use relq_redis::bookkeeping::{self, Seen};

use crate::{lease::Lease, scripts::Store, session::Site};

pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    bookkeeping::audit(|| Box::pin(read(store))).await
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let mut seen = Seen::default();
    seen.read_scheduled(bookkeeping).await?;
    seen.read_list(bookkeeping, &keys.ready).await?;
    seen.read_list(bookkeeping, &keys.handed).await?;
    let mut leases = BTreeSet::new();
    for site in store.sites(Operation::Audit).await? {
        leases.extend(read_leased(store, &site, &mut seen).await?);
    }
    read_ends(store, &leases, &mut seen).await?;
    seen.read_rest(bookkeeping).await?;
    Ok(seen)
}

/// Reads a processing list. Returns the names of its leases.
async fn read_leased(
    store: &Store,
    site: &Site,
    seen: &mut Seen,
) -> Result<Vec<Bytes>, Error> {
    let (list, mut names) = (store.keys.list(site), Vec::new());
    let mut pages = store.bookkeeping.list_pages(&list, Operation::Audit);
    while let Some(page) = pages.next_page().await? {
        for element in &page {
            let lease = Lease::parse(element).filter(|lease| lease.site == *site);
            seen.element(lease.as_ref().map_or(element, |lease| &lease.entry));
            names.extend(lease.map(|lease| lease.name));
        }
    }
    Ok(names)
}

/// Checks that every lease end belongs to a lease, and that every lease of the shared
/// list has an end.
async fn read_ends(
    store: &Store,
    leases: &BTreeSet<Bytes>,
    seen: &mut Seen,
) -> Result<(), Error> {
    let ends = store.bookkeeping.scan("ZSCAN", &store.keys.leased).await?;
    let ends: BTreeSet<_> = ends.into_iter().map(|(name, _)| name).collect();
    for name in ends.difference(leases) {
        seen.problem(format!("a lease end without a lease: {}", name.escape_ascii()));
    }
    let is_shared = |name: &&Bytes| {
        Lease::of_name(name).is_some_and(|lease| lease.site == Site::Shared)
    };
    for name in leases.difference(&ends).filter(is_shared) {
        seen.problem(format!("a lease without an end: {}", name.escape_ascii()));
    }
    Ok(())
}
