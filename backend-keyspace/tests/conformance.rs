//! The rules that every backend keeps, judged on this one.

use conformance_tests::own::Keyspace;

conformance_tests::conformance!(Keyspace, redis);
