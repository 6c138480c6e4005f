//! The exit codes that say in which state jobs are.

/// Some jobs became dead.
pub(crate) const DIED: u8 = 3;

/// Some jobs have not ended.
pub(crate) const LEFT: u8 = 4;

/// Some jobs were cancelled or discarded, so they have no result.
pub(crate) const NO_RESULT: u8 = 5;
