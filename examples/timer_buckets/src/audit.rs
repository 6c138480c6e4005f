//! The audit of a queue: checks that each job is in exactly one place (R23).

use relq_core::{Error, error::Operation};
use relq_redis::{
    Reply,
    bookkeeping::{Pair, Scanned, Seen},
    command,
};

use crate::{lease::Lease, scripts::Store};

/// The prefix of an audit name that stands for a lease in the set of a minute.
const LOOKED_AT: &[u8] = b"looked at ";

/// Records every ready and leased job, and checks that each lease is in the set of a
/// minute.
pub(crate) async fn read(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    seen.judge_pairs_by(problems_of);
    seen.read_list(&store.bookkeeping, &store.keys.ready).await?;
    for (_, name) in store.leases(Operation::Audit).await? {
        let id = Lease::parse(&name).map_or_else(Default::default, |lease| lease.id);
        seen.job(&id, &name).await?;
        seen.lease(&name, b"").await?;
        seen.lease(&[LOOKED_AT, &name].concat(), b"").await?;
    }
    let mut items = store.bookkeeping.scan_pages(Scanned::Hash, &store.keys.held);
    while let Some(page) = items.next_page().await? {
        for (name, _) in &page {
            seen.leased_element(name).await?;
        }
    }
    read_sets(store, seen).await
}

async fn read_sets(store: &Store, seen: &mut Seen) -> Result<(), Error> {
    let mut minutes = command("ZRANGE");
    minutes.arg(&store.keys.minutes).arg(0).arg(-1);
    let minutes = store.conn.call(Operation::Audit, &minutes).await?.list()?;
    for minute in minutes {
        let mut members = command("SMEMBERS");
        members.arg(store.keys.set_of(&minute.text()?));
        let members = store.conn.call(Operation::Audit, &members).await?.list()?;
        for name in members.into_iter().map(Reply::bytes) {
            seen.leased_element(&[LOOKED_AT, &name?].concat()).await?;
        }
    }
    Ok(())
}

/// Reports a lease that has no item or is in no set. A set may still contain a
/// lease that has ended.
fn problems_of(pair: &Pair) -> Vec<String> {
    let name = String::from_utf8_lossy(&pair.name);
    let is_ended = pair.name.starts_with(LOOKED_AT) && pair.leases.is_empty();
    let is_broken = pair.is_broken() && !is_ended;
    let problem = || format!("{name}: a lease without its item, or in no minute's set");
    is_broken.then(problem).into_iter().collect()
}
