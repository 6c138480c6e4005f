//! Tests that the user in the README has exactly the rights that the backend needs.

mod subject;

relq_conformance::acl!(crate::subject::BySadd);
