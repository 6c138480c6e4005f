//! Whether a database may be the queue's: it is the whole of it.

use relq_core::{BoxError, Error, Operation};
use relq_redis::{code_of, command};

use crate::{config::ForeignKeys, pick::Sweep, scripts::Store};

/// Pages that are looked at for foreign keys, a thousand keys each. In a larger database
/// they are a sample by hash, in which a share of one in a thousand is missed once in
/// twenty thousand times.
const PAGES: usize = 10;

const OF_A_CLUSTER: &str = "it is a node of a Redis Cluster, and this pattern needs a whole \
                            database on one server: RANDOMKEY and SCAN see the keys of \
                            one node";

/// Says why the database cannot be the queue's, if it cannot. That it is no other queue's
/// is looked at where the marker is: `relq_redis::Owner`.
pub(crate) async fn check(
    store: &Store,
    foreign_keys: ForeignKeys,
) -> Result<(), Error> {
    refuse_cluster(store).await?;
    match foreign_keys {
        ForeignKeys::Refused => refuse_foreign_keys(store).await,
        ForeignKeys::Tolerated => Ok(()),
    }
}

/// A node of a cluster has a part of the keys, and RANDOMKEY and SCAN show no other.
async fn refuse_cluster(store: &Store) -> Result<(), Error> {
    let mut info = command("INFO");
    info.arg("cluster");
    let info = store.conn.call(Operation::Connect, &info).await?.text()?;
    if info.lines().any(|line| line.trim() == "cluster_enabled:1") {
        return Err(unusable(store, OF_A_CLUSTER));
    }
    Ok(())
}

/// A node of a cluster refuses to look at the marker and at the name of the database's
/// queue at once, because they are in different slots.
pub(crate) fn say_of_a_cluster(error: Error) -> Error {
    match code_of(&error) {
        Some("CROSSSLOT" | "CLUSTERDOWN" | "MOVED") => {
            Error::Unusable { at: error.at(), source: OF_A_CLUSTER.into() }
        }
        _ => error,
    }
}

/// Where nothing is unclaimed there is no foreign key, for certain.
async fn refuse_foreign_keys(store: &Store) -> Result<(), Error> {
    if store.stats(Operation::Connect).await?.ready == 0 {
        return Ok(());
    }
    let mut sweep = Sweep::of_all();
    for _ in 0..PAGES {
        let Some(page) = sweep.next_page(store, Operation::Connect).await? else {
            return Ok(());
        };
        if let Some(key) = page.named.first() {
            let key = String::from_utf8_lossy(key);
            let why = format!(
                "the database at {} holds keys that are none of the queue's, such as \
                 {key:?}: give the queue a database of its own, or say that foreign \
                 keys are tolerated",
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
