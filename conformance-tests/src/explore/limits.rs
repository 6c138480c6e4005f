//! The limits of a search.

use std::path::PathBuf;

use super::Faults;

/// The limits of a search.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// The most faults in one run.
    pub faults: Faults,
    /// The number of known states at which the search ends. Each state takes about 20
    /// bytes of memory.
    pub states: usize,
    /// The file in which the search saves its progress every few seconds, and from
    /// which it continues. The file is removed when the search has ended.
    pub resume: Option<PathBuf>,
    /// How many runs may be made to prove that the run of a failure is the simplest one.
    pub proof_runs: u64,
}

/// The default of [`Limits::states`]. The states take 20 MB.
pub const DEFAULT_STATES: usize = 1_000_000;

impl Limits {
    /// Limits the faults of a run to `faults`, and the states to [`DEFAULT_STATES`]. No
    /// failure is proven to be the simplest.
    pub fn of(faults: Faults) -> Self {
        Self { faults, states: DEFAULT_STATES, resume: None, proof_runs: 0 }
    }
}
