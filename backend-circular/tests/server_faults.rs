//! Faults of the server, and their effect on this backend and on its waiting claims,
//! for each way in which finished jobs leave the ring.

mod mark {
    relq_conformance::server_faults!(relq_conformance::own::Circular);
}

mod lrem {
    relq_conformance::server_faults!(relq_conformance::own::CircularLrem);
}
