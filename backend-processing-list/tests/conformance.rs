//! The rules that every backend keeps, judged on this one, in each of its modes.

mod per_worker {
    use conformance_tests::own::ProcessingList;

    conformance_tests::conformance!(ProcessingList, redis);
}

mod shared {
    use conformance_tests::own::ProcessingListShared;

    conformance_tests::conformance!(ProcessingListShared, redis);
}
