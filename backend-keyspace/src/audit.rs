//! Checks that each job is in exactly one place (R23).

use std::collections::BTreeSet;

use bytes::Bytes;
use relq_core::{Error, error::Operation};
use relq_redis::bookkeeping::Seen;

use crate::{
    config::ForeignKeys, keys::id_of_item, lease, pick::Sweep, scripts::Store,
};

/// How many leases are checked together.
const PAGE: usize = 500;

/// The keys that a scan of the whole database returned, each once.
#[derive(Default)]
struct Shown {
    items: BTreeSet<Bytes>,
    orphans: BTreeSet<Bytes>,
    foreign_keys: BTreeSet<Bytes>,
}

/// Notes every ready and leased job. Reports keys without a lease, and foreign keys if
/// the queue does not tolerate them.
pub(crate) async fn read(
    store: &Store,
    foreign_keys: ForeignKeys,
    seen: &mut Seen,
) -> Result<(), Error> {
    let shown = look_at_all(store).await?;
    for item in &shown.items {
        seen.job(id_of_item(item));
    }
    read_leased(store, seen).await?;
    for key in &shown.orphans {
        seen.problem(format!("{} has no lease", text(key)));
    }
    if foreign_keys == ForeignKeys::Refused {
        for key in &shown.foreign_keys {
            seen.problem(format!("the key {} does not belong to the queue", text(key)));
        }
    }
    Ok(())
}

async fn look_at_all(store: &Store) -> Result<Shown, Error> {
    let mut shown = Shown::default();
    let mut sweep = Sweep::of_all();
    while let Some(page) = sweep.next_page(store, Operation::Audit).await? {
        shown.items.extend(page.items);
        shown.orphans.extend(page.orphans);
        shown.foreign_keys.extend(page.named);
    }
    Ok(shown)
}

/// Checks that every lease has its processing key.
async fn read_leased(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let leases = store.bookkeeping.scan("ZSCAN", &store.keys.leased).await?;
    let leases: Vec<_> = leases.into_iter().map(|(lease, _)| lease).collect();
    for page in leases.chunks(PAGE) {
        for (lease, is_there) in page.iter().zip(store.are_there(page).await?) {
            seen.job(lease::id_of(lease));
            if !is_there {
                seen.problem(format!("the lease {} has no job", text(lease)));
            }
        }
    }
    Ok(())
}

fn text(key: &Bytes) -> String {
    String::from_utf8_lossy(key).into_owned()
}
