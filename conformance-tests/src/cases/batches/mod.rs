//! Tests of batches. A backend that supports batches keeps the rules B1 to B10 beside
//! the rules for jobs.

mod asking;
mod beside_others;
mod cancelling;
mod completing;
mod counting;
mod fixture;
mod keeping;
mod making;
mod serving;
mod stored;
mod waking;
