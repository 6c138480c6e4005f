//! An operator restores jobs as they were in a queue (R34).

mod dead;
pub(super) mod fixture;
mod keeping;
mod ordering;
mod refusing;
mod repeated;
mod states;
