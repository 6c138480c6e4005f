//! The figures.

use relq_core::{Error, Stats, error::Operation};

use crate::{config::ForeignKeys, pick::Sweep, scripts::Store};

/// Pages of a thousand keys that stats look at for keys that ought not to be there.
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

/// What is unclaimed and no ready job: where it is not tolerated, as far as a few pages
/// show; in a larger database that few are a fault for the audit to find.
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
