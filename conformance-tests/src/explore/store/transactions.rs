//! How the steps of an embedded store depend on each other: by its transactions.

use std::path::Path;

/// The transactions of a store that keeps its jobs in a folder.
///
/// A transaction sees the data that was committed when it began, and its own changes.
/// Other connections see its changes once it has ended, and all of them together. One
/// transaction writes at a time, and those that read wait for none.
#[derive(Debug, Clone, Copy)]
pub struct Transactions {
    /// Returns whether the step with this text begins or ends a transaction. `None` if
    /// it does neither.
    pub bound: fn(&str) -> Option<Bound>,
    /// Returns a digest of everything that the last step of this thread returned. The
    /// hook calls it after the step.
    pub result: fn() -> u64,
    /// Opens a reader of the committed data in a folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub digest: fn(&Path) -> Result<Digest, String>,
}

/// Returns a digest of all data that is committed.
pub type Digest = Box<dyn FnMut() -> Result<u64, String> + Send>;

/// How a step changes the transaction of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The step begins a transaction that only reads.
    BeginsToRead,
    /// The step begins a transaction that writes. Only one such transaction runs at a
    /// time.
    BeginsToWrite,
    /// The step ends the transaction.
    Ends,
}
