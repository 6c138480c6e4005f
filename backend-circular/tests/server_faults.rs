//! What a server may do to this backend, and to who waits at it, in each of the ways in
//! which what is done leaves the ring.

mod mark {
    conformance_tests::server_faults!(conformance_tests::own::Circular);
}

mod lrem {
    conformance_tests::server_faults!(conformance_tests::own::CircularLrem);
}
