//! The rules that every backend keeps, judged on this one.

mod subject;

use subject::Zset;

conformance_tests::conformance!(Zset, redis);
