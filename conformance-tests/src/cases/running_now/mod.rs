//! An operator runs a scheduled job now (R32).

mod batches;
mod keeping;
mod moving;
mod refusing;
