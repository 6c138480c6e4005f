//! The conformance suite, run on this backend.

use relq_conformance::own::Zset;

relq_conformance::conformance!(Zset, redis);
