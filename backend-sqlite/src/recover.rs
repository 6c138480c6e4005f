//! Recovery: takes back one page of jobs with expired leases, and promotes due jobs.

use std::num::NonZeroU32;

use relq_core::{operator::JobState, outcome::Recovered};

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::followers;
use crate::push::SWEPT_AT_ONCE;
use crate::store::Store;

/// Recovers at most `page` jobs.
pub(crate) struct Recover {
    pub(crate) page: NonZeroU32,
}

impl Call for Recover {
    type Answer = Recovered;

    const LOOKS_FIRST: bool = true;

    fn weight(&self) -> usize {
        usize::try_from(self.page.get()).unwrap_or(usize::MAX)
    }

    fn look(&self, store: &Store<'_>) -> Result<Option<Recovered>, Failure> {
        let nothing_done =
            hint(store, Recovered::default(), store.needs_maintenance()?)?;
        Ok((!nothing_done.more).then_some(nothing_done))
    }

    fn run(&self, store: &Store<'_>) -> Result<Recovered, Failure> {
        store.sweep(SWEPT_AT_ONCE)?;
        store.sweep_workers(SWEPT_AT_ONCE)?;
        let page = self.page.get().min(store.page);
        let states = store.recover_expired(page)?;
        let taken = count(states.len());
        let ready = JobState::Ready.as_str();
        let requeued = count(states.iter().filter(|state| *state == ready).count());
        let promoted = match page - taken {
            0 => 0,
            room => count(store.promote_due(room)?),
        };
        if taken + promoted > 0 {
            store.wake_claims();
        }
        let buried = taken - requeued;
        if buried > 0 {
            store.wake_waiters_of_all();
        }
        let has_maintenance = maintenance::recover(store, page)?;
        followers::cancel_orphans(store, page)?;
        let done = Recovered { requeued, buried, promoted, ..Recovered::default() };
        hint(store, done, has_maintenance)
    }
}

/// Completes the result of a recovery: whether there is more to do now, and how long until
/// the next lease expires or the next scheduled job is due. `has_maintenance` says whether
/// batches need maintenance.
fn hint(
    store: &Store<'_>,
    done: Recovered,
    has_maintenance: bool,
) -> Result<Recovered, Failure> {
    let (lease, delay) = store.next_ends()?;
    let next = [lease, delay].into_iter().flatten().min();
    let more = next.is_some_and(|at| at <= store.now_ms())
        || has_maintenance
        || store.has_orphans()?
        || store.has_outdated()?;
    Ok(Recovered { more, next_in: next.map(|at| store.until(at)), ..done })
}

/// Converts a number of rows to `u32`. No statement here changes more rows than a page.
fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}
