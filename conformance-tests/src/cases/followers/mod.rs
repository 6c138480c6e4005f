//! Followers: a job that is pushed after another one is held until that job is done, and
//! is never delivered if it ends otherwise (R30).

mod at_once;
mod batches;
mod cancelling;
mod cascading;
mod fixture;
mod holding;
mod limits;
mod options;
mod pushing;
mod refusing;
mod releasing;
mod repeated;
