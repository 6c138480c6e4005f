//! Followers: a job that is pushed after another one is held until that job is done, and
//! is never delivered if it ends otherwise (R30).

mod cancelling;
mod fixture;
mod holding;
mod pushing;
mod releasing;
