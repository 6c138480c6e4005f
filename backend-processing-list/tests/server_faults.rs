//! What a server may do to this backend and to the claims that wait on it, in each of
//! its modes.

mod per_worker {
    relq_conformance::server_faults!(relq_conformance::own::ProcessingList);
}

mod shared {
    relq_conformance::server_faults!(relq_conformance::own::ProcessingListShared);
}
