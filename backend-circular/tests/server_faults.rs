//! What a server may do to this backend, and to who waits at it, in each of the ways in
//! which what is done leaves the ring.

mod mark {
    relq_conformance::server_faults!(relq_conformance::own::Circular);
}

mod lrem {
    relq_conformance::server_faults!(relq_conformance::own::CircularLrem);
}
