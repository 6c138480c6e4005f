//! The rules that every backend keeps, judged on this one.

use conformance_tests::own::Stream;

conformance_tests::conformance!(Stream, redis);
