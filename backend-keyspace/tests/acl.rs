//! The user that the README names has the rights that the backend needs, and no more.

conformance_tests::acl!(conformance_tests::own::Keyspace);
