//! The user that the README names has the rights that the backend needs, and no more,
//! in each of its modes.

mod subject;

mod per_worker {
    conformance_tests::acl!(crate::subject::PerWorker);
}

mod shared {
    conformance_tests::acl!(crate::subject::Shared);
}
