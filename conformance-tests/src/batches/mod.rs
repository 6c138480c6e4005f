//! The promises of a backend with batches beyond the rules of jobs (B1 to B10).

mod anything;
mod asking;
mod cancelling;
mod completing;
mod counting;
mod fixture;
mod keeping;
mod making;
mod serving;
mod waking;

pub(crate) use anything::*;
pub(crate) use asking::*;
pub(crate) use cancelling::*;
pub(crate) use completing::*;
pub(crate) use counting::*;
pub(crate) use keeping::*;
pub(crate) use making::*;
pub(crate) use serving::*;
pub(crate) use waking::*;
