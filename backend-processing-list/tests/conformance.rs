//! The rules that every backend keeps, judged on this one, in each of its modes.

mod subject;

mod per_worker {
    use crate::subject::PerWorker;

    conformance_tests::conformance!(PerWorker, redis);
}

mod shared {
    use crate::subject::Shared;

    conformance_tests::conformance!(Shared, redis);
}
