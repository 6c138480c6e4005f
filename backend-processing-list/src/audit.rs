//! Checks that each job is in exactly one place (R23).

use relq_core::{Error, error::Operation, operator::Audit};
use relq_redis::bookkeeping::{self, Pair, Scanned, Seen};

use crate::{lease::Lease, scripts::Store, session::Site};

pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    bookkeeping::audit(&store.bookkeeping, || Box::pin(read(store))).await
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let mut seen = Seen::new(bookkeeping);
    seen.judge_pairs_by(problems_of);
    seen.read_scheduled(bookkeeping).await?;
    seen.read_list(bookkeeping, &keys.ready).await?;
    seen.read_list(bookkeeping, &keys.handed).await?;
    for site in store.sites(Operation::Audit).await? {
        read_leased(store, &site, &mut seen).await?;
    }
    read_ends(store, &mut seen).await?;
    seen.read_rest(bookkeeping).await?;
    Ok(seen)
}

/// Reports every element of one processing list to the audit, and the lease of each
/// element that has a valid stamp.
async fn read_leased(store: &Store, site: &Site, seen: &mut Seen) -> Result<(), Error> {
    let list = store.keys.list(site);
    let mut pages = store.bookkeeping.list_pages(&list, Operation::Audit);
    while let Some(page) = pages.next_page().await? {
        for element in &page {
            let lease = Lease::parse(element).filter(|lease| lease.site == *site);
            seen.element(lease.as_ref().map_or(element, |lease| &lease.entry)).await?;
            if let Some(lease) = lease {
                seen.leased_element(&lease.name).await?;
            }
        }
    }
    Ok(())
}

/// Reports every lease end of the sorted set `leased` to the audit.
async fn read_ends(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut ends = store.bookkeeping.scan_pages(Scanned::SortedSet, &store.keys.leased);
    while let Some(page) = ends.next_page().await? {
        for (name, _) in page {
            seen.lease(&name, b"").await?;
        }
    }
    Ok(())
}

/// Compares a lease end with the elements of that lease. Every lease end must belong to
/// an element, and every element of the shared list must have a lease end.
fn problems_of(pair: &Pair) -> Vec<String> {
    let name = pair.name.escape_ascii();
    let is_shared =
        || Lease::of_name(&pair.name).is_some_and(|lease| lease.site == Site::Shared);
    match (pair.leases.is_empty(), pair.elements) {
        (false, 0) => vec![format!("a lease end without a lease: {name}")],
        (true, _) if is_shared() => vec![format!("a lease without an end: {name}")],
        _ => Vec::new(),
    }
}
