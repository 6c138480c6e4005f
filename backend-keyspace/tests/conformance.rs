//! The rules that every backend keeps, judged on this one.

use relq_conformance::own::Keyspace;

relq_conformance::conformance!(Keyspace, redis);
