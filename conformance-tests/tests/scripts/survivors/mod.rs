//! The changes that no test case catches, by backend.

pub(crate) mod circular;
pub(crate) mod keyspace;
pub(crate) mod processing_list;
pub(crate) mod stream;
pub(crate) mod zset;
