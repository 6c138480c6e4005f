//! The rules that every backend keeps, judged on this one.

mod subject;

use subject::Stream;

conformance_tests::conformance!(Stream, redis);
