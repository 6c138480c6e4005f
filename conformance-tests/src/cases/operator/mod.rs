//! The calls that an operator makes (R23).

mod cancelling;
mod pausing;
mod peeking;
