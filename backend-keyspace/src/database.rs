//! Checks whether the queue may use the database: a queue needs all of it.

use relq_core::{
    Error,
    error::{BoxError, Operation},
};
use relq_redis::code_of;

use crate::{config::ForeignKeys, pick::Sweep, scripts::Store};

/// The number of pages, of a thousand keys each, that are scanned for foreign keys. In
/// a larger database these keys are a random sample: if one key in a thousand is
/// foreign, the sample misses all foreign keys once in twenty thousand times.
const PAGES: usize = 10;

const OF_A_CLUSTER: &str = "the server is a node of a Redis Cluster, and this pattern needs \
                            a whole database on one server: RANDOMKEY and SCAN return \
                            the keys of one node";

/// Fails with the reason if the queue cannot use the database. `relq_redis::Owner`
/// checks by the marker whether another queue owns the database.
pub(crate) async fn check(
    store: &Store,
    foreign_keys: ForeignKeys,
) -> Result<(), Error> {
    // A cluster node holds only some of the keys, and RANDOMKEY and SCAN return only
    // those.
    if store.conn.is_in_cluster() {
        return Err(unusable(store, OF_A_CLUSTER));
    }
    match foreign_keys {
        ForeignKeys::Refused => refuse_foreign_keys(store).await,
        ForeignKeys::Tolerated => Ok(()),
    }
}

/// Replaces the error of a cluster node by one that explains it. A cluster node refuses
/// a command that names both the marker and the key `relq:database`, because these keys
/// are in different slots.
pub(crate) fn say_of_a_cluster(error: Error) -> Error {
    match code_of(&error) {
        Some("CROSSSLOT" | "CLUSTERDOWN" | "MOVED") => {
            Error::Unusable { at: error.at(), source: OF_A_CLUSTER.into() }
        }
        _ => error,
    }
}

/// Fails if the database holds foreign keys. A database of up to a thousand keys is
/// scanned in one round trip.
async fn refuse_foreign_keys(store: &Store) -> Result<(), Error> {
    let mut sweep = Sweep::of_all();
    for _ in 0..PAGES {
        let Some(page) = sweep.next_page(store, Operation::Connect).await? else {
            return Ok(());
        };
        if let Some(key) = page.named.first() {
            let key = String::from_utf8_lossy(key);
            let why = format!(
                "the database at {} holds keys that do not belong to the queue, such as \
                 {key:?}: give the queue a database of its own, or tolerate foreign \
                 keys with `?foreign=tolerate` in the URL",
                store.conn
            );
            return Err(unusable(store, why));
        }
    }
    Ok(())
}

fn unusable(store: &Store, why: impl Into<BoxError>) -> Error {
    Error::Unusable { at: store.conn.at(Operation::Connect), source: why.into() }
}
