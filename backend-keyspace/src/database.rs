//! Checks whether the queue may use the database: a queue needs all of it.

use relq_core::{
    Error,
    error::{BoxError, Operation},
};
use relq_redis::{Cmd, code_of, command};

use crate::{
    config::ForeignKeys,
    keys::{ITEM, Keys, PROCESSING},
    pick::Sweep,
    scripts::{PAGE, Store},
};

const FIRST_PAGE: &str = include_str!("../lua/first_page.lua");

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

/// Builds the command that looks for a foreign key in the first page of the database. It
/// is sent together with the other checks of a new connection.
pub(crate) fn first_page(keys: &Keys) -> Cmd {
    let own = keys.bookkeeping.all().map(str::to_owned).into_iter();
    let own: Vec<_> = own.chain(keys.of_pattern()).collect();
    let mut cmd = command("EVAL_RO");
    cmd.arg(FIRST_PAGE).arg(own.len()).arg(own).arg(PAGE).arg(ITEM).arg(PROCESSING);
    cmd
}

/// Fails if the database holds foreign keys. A database of up to a thousand keys has been
/// scanned when the connection was opened.
async fn refuse_foreign_keys(store: &Store) -> Result<(), Error> {
    let Some(first) = store.conn.take_first_look()? else { return Ok(()) };
    let mut parts = first.parts()?;
    let (cursor, foreign_key) = (parts.part().bytes()?, parts.part().optional_bytes()?);
    if let Some(key) = foreign_key {
        return Err(refusal(store, &key));
    }
    let mut sweep = Sweep::rest_of_all(cursor);
    for _ in 1..PAGES {
        let Some(page) = sweep.next_page(store, Operation::Connect).await? else {
            return Ok(());
        };
        if let Some(key) = page.named.first() {
            return Err(refusal(store, key));
        }
    }
    Ok(())
}

fn refusal(store: &Store, key: &[u8]) -> Error {
    let key = String::from_utf8_lossy(key);
    let why = format!(
        "the database at {} holds keys that do not belong to the queue, such as {key:?}: \
         give the queue a database of its own, or tolerate foreign keys with \
         `?foreign=tolerate` in the URL",
        store.conn
    );
    unusable(store, why)
}

fn unusable(store: &Store, why: impl Into<BoxError>) -> Error {
    Error::Unusable { at: store.conn.at(Operation::Connect), source: why.into() }
}
