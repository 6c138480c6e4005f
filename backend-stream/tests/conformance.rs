//! The conformance suite, run on this backend.

use relq_conformance::own::Stream;

relq_conformance::conformance!(Stream, redis);
