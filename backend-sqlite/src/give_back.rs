//! Gives jobs back: makes leased jobs ready again, without counting the attempt.

use std::collections::BTreeMap;

use relq_core::Receipt;

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::lease::{Token, job_of};
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
        let held = find_held(store, &self.receipts)?;
        for job in held.keys().filter_map(|token| job_of(token)) {
            give_back(store, job)?;
        }
        if held.values().any(|held| held.batch.is_some()) {
            maintenance::after_pieces_ended(store)?;
        }
        Ok(())
    }
}

/// Finds the leased jobs that receipts belong to: their tokens, and the values that are
/// needed to settle them. Leaves out leases that were lost.
pub(crate) fn find_held<'a>(
    store: &Store<'_>,
    receipts: impl IntoIterator<Item = &'a Receipt>,
) -> Result<BTreeMap<Token, Held>, Failure> {
    let tokens = receipts.into_iter().map(Receipt::token);
    let leases = tokens.filter_map(|token| Some((job_of(token)?, &**token)));
    let leases: Vec<_> = leases.collect();
    Ok(store.find_leases(&leases)?.into_iter().collect())
}

/// Makes a leased job ready again, and resets its attempt to the value before the
/// claim.
pub(crate) fn give_back(store: &Store<'_>, job: i64) -> Result<(), Failure> {
    store.wake_claims();
    store.give_back(job)
}
