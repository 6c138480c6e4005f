//! Audit: checks that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use relq_core::Error;
use relq_redis::bookkeeping::Seen;

use crate::{lease::Lease, scripts::Store};

/// Notes every ready and leased job.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    for (id, _) in bookkeeping.scan("ZSCAN", &keys.ranked).await? {
        seen.by_id(id, "ranked");
    }
    seen.read_list(bookkeeping, &keys.ready).await?;
    seen.read_list(bookkeeping, &keys.handed).await?;
    read_leased(store, seen).await
}

/// Checks that every lease has an entry, and that every entry has a lease.
async fn read_leased(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut leases = BTreeSet::new();
    for (member, _) in store.bookkeeping.scan("ZSCAN", &store.keys.leased).await? {
        seen.job(Lease::parse(&member).map_or_else(Default::default, |lease| lease.id));
        leases.insert(member);
    }
    let held = store.bookkeeping.scan("HSCAN", &store.keys.held).await?;
    let held: BTreeSet<_> = held.into_iter().map(|(lease, _)| lease).collect();
    for lease in leases.symmetric_difference(&held) {
        let lease = String::from_utf8_lossy(lease);
        seen.problem(format!("lease or entry {lease} without the other"));
    }
    Ok(())
}
