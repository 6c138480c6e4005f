//! What a server may do to this backend, and to who waits at it, in each of the ways in
//! which what is done leaves the ring.

mod subject;

mod mark {
    conformance_tests::server_faults!(crate::subject::Mark);
}

mod lrem {
    conformance_tests::server_faults!(crate::subject::Lrem);
}
