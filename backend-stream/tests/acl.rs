//! Tests that the Redis user of the README has exactly the rights that the backend
//! needs.

relq_conformance::acl!(relq_conformance::own::Stream);
