//! What a server may do to this backend, and to who waits at it, in each of its modes.

mod subject;

mod per_worker {
    conformance_tests::server_faults!(crate::subject::PerWorker);
}

mod shared {
    conformance_tests::server_faults!(crate::subject::Shared);
}
