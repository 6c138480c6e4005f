//! The rules that every backend keeps, judged on this one, in each of the ways in which
//! what is done leaves the ring.

mod subject;

mod mark {
    use crate::subject::Mark;

    conformance_tests::conformance!(Mark, redis);
}

mod lrem {
    use crate::subject::Lrem;

    conformance_tests::conformance!(Lrem, redis);
}
