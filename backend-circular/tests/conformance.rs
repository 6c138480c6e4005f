//! The rules that every backend keeps, judged on this one.

mod subject;

use subject::Circular;

conformance_tests::conformance!(Circular, redis);
