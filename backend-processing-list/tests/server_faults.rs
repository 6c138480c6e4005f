//! Faults of the server, and their effect on this backend and on its waiting claims, in
//! each of its modes.

mod per_worker {
    relq_conformance::server_faults!(relq_conformance::own::ProcessingList);
}

mod shared {
    relq_conformance::server_faults!(relq_conformance::own::ProcessingListShared);
}
