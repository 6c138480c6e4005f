//! The rules that every backend keeps, judged on this one.

use conformance_tests::own::Zset;

conformance_tests::conformance!(Zset, redis);
