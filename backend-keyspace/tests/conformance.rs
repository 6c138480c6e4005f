//! The rules that every backend keeps, judged on this one.

mod subject;

use subject::Keyspace;

conformance_tests::conformance!(Keyspace, redis);
