//! A job has one holder, and only the holder can settle it (R6 to R8).

mod call;
mod holding;
mod racing;
pub(super) mod stale;
