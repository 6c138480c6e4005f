//! Audit: checks that each job is in exactly one place (R23).

use relq_core::Error;
use relq_redis::bookkeeping::{Pair, Scanned, Seen};

use crate::{lease::Lease, scripts::Store};

/// Adds every ready and leased job to `seen`.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    seen.read_by_id(bookkeeping, &keys.ranked, "ranked").await?;
    seen.read_list(bookkeeping, &keys.ready).await?;
    seen.read_list(bookkeeping, &keys.handed).await?;
    read_leased(store, seen).await
}

/// Checks that every lease has an entry, and that every entry has a lease.
async fn read_leased(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    seen.judge_pairs_by(problems_of);
    let mut leases = bookkeeping.scan_pages(Scanned::SortedSet, &keys.leased);
    while let Some(page) = leases.next_page().await? {
        for (member, _) in page {
            let lease = Lease::parse(&member);
            let id = lease.map_or_else(Default::default, |lease| lease.id);
            seen.job(&id, &member).await?;
            seen.lease(&member, b"").await?;
        }
    }
    let mut held = bookkeeping.scan_pages(Scanned::Hash, &keys.held);
    while let Some(page) = held.next_page().await? {
        for (lease, _) in page {
            seen.leased_element(&lease).await?;
        }
    }
    Ok(())
}

fn problems_of(pair: &Pair) -> Vec<String> {
    let lease = String::from_utf8_lossy(&pair.name);
    let problem = || format!("lease or entry {lease} without the other");
    pair.is_broken().then(problem).into_iter().collect()
}
