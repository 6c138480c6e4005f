//! The user that the README names has the rights that the backend needs, and no more.

relq_conformance::acl!(relq_conformance::own::Keyspace);
