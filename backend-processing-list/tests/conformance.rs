//! The conformance suite, run on this backend in each of its modes.

mod per_worker {
    use relq_conformance::own::ProcessingList;

    relq_conformance::conformance!(ProcessingList, redis);
}

mod shared {
    use relq_conformance::own::ProcessingListShared;

    relq_conformance::conformance!(ProcessingListShared, redis);
}
