//! The user that the README names has the rights that the backend needs, and no more,
//! in each of its modes.

mod per_worker {
    conformance_tests::acl!(conformance_tests::own::ProcessingList);
}

mod shared {
    conformance_tests::acl!(conformance_tests::own::ProcessingListShared);
}
