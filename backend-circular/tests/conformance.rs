//! The rules that every backend keeps, judged on this one, in each of the ways in which
//! what is done leaves the ring.

mod mark {
    use conformance_tests::own::Circular;

    conformance_tests::conformance!(Circular, redis);
}

mod lrem {
    use conformance_tests::own::CircularLrem;

    conformance_tests::conformance!(CircularLrem, redis);
}
