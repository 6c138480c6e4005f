//! The user that the README names has the rights that the backend needs, and no more,
//! in each of its modes.

conformance_tests::acl!(
    conformance_tests::own::ProcessingList,
    conformance_tests::own::ProcessingListShared,
);
