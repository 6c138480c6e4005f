//! The changes of scripts that no test case catches, and the test cases that catch no
//! change, each with the reason. A person has checked each reason. A test that a reason
//! names was seen to fail on the change.

pub(crate) mod circular;
pub(crate) mod keyspace;
pub(crate) mod processing_list;
pub(crate) mod sqlite;
pub(crate) mod stream;
pub(crate) mod zset;
