//! The rules that every backend keeps, judged on this one.

use relq_conformance::own::Stream;

relq_conformance::conformance!(Stream, redis);
