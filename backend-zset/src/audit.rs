//! Proving that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use queue_core::{Audit, Error};
use queue_redis::shelf::{self, Seen};

use crate::{lease::Lease, scripts::Store};

pub(crate) async fn audit(store: &Store) -> Result<Audit, Error> {
    shelf::audit(|| Box::pin(read(store))).await
}

async fn read(store: &Store) -> Result<Seen, Error> {
    let (keys, shelf) = (&store.keys, &store.shelf);
    let mut seen = Seen::default();
    seen.read_scheduled(shelf).await?;
    for (id, _) in shelf.scan("ZSCAN", &keys.ranked).await? {
        seen.by_id(id, "ranked");
    }
    seen.read_list(shelf, &keys.ready).await?;
    seen.read_list(shelf, &keys.handed).await?;
    read_leased(store, &mut seen).await?;
    seen.read_rest(shelf).await?;
    Ok(seen)
}

/// Every lease has its entry, and every entry its lease.
async fn read_leased(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut leases = BTreeSet::new();
    for (member, _) in store.shelf.scan("ZSCAN", &store.keys.leased).await? {
        seen.job(Lease::parse(&member).map_or_else(Default::default, |lease| lease.id));
        leases.insert(member);
    }
    let held = store.shelf.scan("HSCAN", &store.keys.held).await?;
    let held: BTreeSet<_> = held.into_iter().map(|(lease, _)| lease).collect();
    for lease in leases.symmetric_difference(&held) {
        let lease = String::from_utf8_lossy(lease);
        seen.problem(format!("lease or entry {lease} without the other"));
    }
    Ok(())
}
