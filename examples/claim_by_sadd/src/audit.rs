//! The audit of a queue: checks that each job is in exactly one place (R23).

use relq_core::{Error, error::Operation};
use relq_redis::bookkeeping::{Pair, Scanned, Seen};

use crate::{keys::id_in, lease::Lease, scripts::Store};

/// Records every ready and leased job, and checks that each body belongs to one of
/// them.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    seen.judge_pairs_by(problems_of);
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let mut elements = bookkeeping.list_pages(&keys.ready, Operation::Audit);
    while let Some(page) = elements.next_page().await? {
        for element in &page {
            match id_in(element) {
                Some(id) => note(seen, id, b"ready").await?,
                None => seen.element(element).await?,
            }
        }
    }
    let mut leases = bookkeeping.scan_pages(Scanned::SortedSet, &keys.leased);
    while let Some(page) = leases.next_page().await? {
        for (name, _) in &page {
            let id = Lease::parse(name).map_or_else(Default::default, |lease| lease.id);
            note(seen, &id, name).await?;
        }
    }
    read_fields(store, seen).await
}

/// Records the fields of the two hashes: the ids that have a body, and the leases that
/// `processing` names. Each of these leases must exist.
async fn read_fields(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let mut bodies = bookkeeping.scan_pages(Scanned::Hash, &keys.bodies);
    while let Some(page) = bodies.next_page().await? {
        for (id, _) in &page {
            seen.leased_element(id).await?;
        }
    }
    let mut processing = bookkeeping.scan_pages(Scanned::Hash, &keys.processing);
    while let Some(page) = processing.next_page().await? {
        for (_, lease) in &page {
            seen.leased_element(lease).await?;
        }
    }
    Ok(())
}

/// Records a job: its body is the field `id`. For a leased job, records its lease too.
async fn note(seen: &mut Seen, id: &[u8], name: &[u8]) -> Result<(), Error> {
    seen.job(id, name).await?;
    seen.lease(id, name).await?;
    if name != b"ready" {
        seen.lease(name, b"").await?;
    }
    Ok(())
}

fn problems_of(pair: &Pair) -> Vec<String> {
    let name = String::from_utf8_lossy(&pair.name);
    let problem = if pair.is_broken() {
        Some(format!("{name}: an id without a body, or a lease without its id"))
    } else {
        (pair.leases.len() > 1).then(|| format!("{name} is ready and leased"))
    };
    problem.into_iter().collect()
}
