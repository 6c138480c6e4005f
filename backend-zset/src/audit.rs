//! Proving that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use relq_core::{Audit, Error};
use relq_redis::bookkeeping::{self, Seen};

use crate::{lease::Lease, scripts::Store};

pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    bookkeeping::audit(|| Box::pin(read(store))).await
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let mut seen = Seen::default();
    seen.read_scheduled(bookkeeping).await?;
    for (id, _) in bookkeeping.scan("ZSCAN", &keys.ranked).await? {
        seen.by_id(id, "ranked");
    }
    seen.read_list(bookkeeping, &keys.ready).await?;
    seen.read_list(bookkeeping, &keys.handed).await?;
    read_leased(store, &mut seen).await?;
    seen.read_rest(bookkeeping).await?;
    Ok(seen)
}

/// Every lease has its entry, and every entry its lease.
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
