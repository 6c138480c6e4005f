//! Checks that the user in the README has exactly the rights that the backend needs.

relq_conformance::acl!(relq_conformance::own::Keyspace);
