//! The conformance suite, run on this backend.

use relq_conformance::own::Keyspace;

relq_conformance::conformance!(Keyspace, redis);
