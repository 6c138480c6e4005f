//! What a server may do to this backend, and to who waits at it, in each of its modes.

mod per_worker {
    conformance_tests::server_faults!(conformance_tests::own::ProcessingList);
}

mod shared {
    conformance_tests::server_faults!(conformance_tests::own::ProcessingListShared);
}
