//! Counts the jobs in each state.

use relq_core::{Error, Stats, error::Operation};

use crate::{config::ForeignKeys, pick::Sweep, scripts::Store};

/// The number of pages, of a thousand keys each, that the stats scan for foreign keys
/// if the configuration does not tolerate them.
const PAGES: usize = 10;

pub(crate) async fn stats(
    store: &Store,
    foreign_keys: ForeignKeys,
) -> Result<Stats, Error> {
    let mut stats = store.stats(Operation::Stats).await?;
    if stats.ready > 0 {
        let foreign_keys = count_foreign_keys(store, foreign_keys).await?;
        stats.ready = stats.ready.saturating_sub(foreign_keys);
    }
    Ok(stats)
}

/// Counts the foreign keys, which must not count as ready jobs. If they are tolerated,
/// the whole database is scanned. Otherwise only a few pages are scanned: foreign keys
/// that this scan misses are a fault that the audit reports.
async fn count_foreign_keys(
    store: &Store,
    foreign_keys: ForeignKeys,
) -> Result<u64, Error> {
    let pages = match foreign_keys {
        ForeignKeys::Refused => PAGES,
        ForeignKeys::Tolerated => usize::MAX,
    };
    let mut sweep = Sweep::of_all();
    for _ in 0..pages {
        if sweep.next_page(store, Operation::Stats).await?.is_none() {
            break;
        }
    }
    Ok(sweep.foreign_keys)
}
