//! The changes that no test case catches, by backend.

pub(crate) mod stream;
pub(crate) mod zset;
