//! Gives jobs back: makes leased jobs ready again, without counting the attempt.

use relq_core::Receipt;

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::lease::job_of;
use crate::statements::Held;
use crate::store::Store;

/// Gives back jobs of a claim whose caller was dropped before it received them.
pub(crate) struct GiveBack {
    pub(crate) receipts: Vec<Receipt>,
}

impl Call for GiveBack {
    type Answer = ();

    fn weight(&self) -> usize {
        self.receipts.len()
    }

    fn run(&self, store: &Store<'_>) -> Result<(), Failure> {
        let mut pieces = false;
        for receipt in &self.receipts {
            if let Some((job, held)) = find_held(store, receipt)? {
                pieces |= held.batch.is_some();
                give_back(store, job)?;
            }
        }
        if pieces {
            maintenance::after_pieces_ended(store)?;
        }
        Ok(())
    }
}

/// Finds the leased job that a receipt belongs to: its key, and the values that are
/// needed to settle it. Returns `None` if the lease was lost.
pub(crate) fn find_held(
    store: &Store<'_>,
    receipt: &Receipt,
) -> Result<Option<(i64, Held)>, Failure> {
    let Some(job) = job_of(receipt.token()) else { return Ok(None) };
    let held = store.find_lease(job, receipt.token())?;
    Ok(held.map(|held| (job, held)))
}

/// Makes a leased job ready again, and resets its attempt to the value before the
/// claim.
pub(crate) fn give_back(store: &Store<'_>, job: i64) -> Result<(), Failure> {
    store.wake_claims();
    store.give_back(job)
}
