//! The promises of a backend with batches beyond the rules of jobs (B1 to B10).

mod asking;
mod cancelling;
mod completing;
mod counting;
mod fixture;
mod keeping;
mod making;
mod serving;
mod waking;
