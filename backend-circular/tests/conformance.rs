//! The conformance suite, run on this backend for each way in which finished jobs leave
//! the ring.

mod mark {
    use relq_conformance::own::Circular;

    relq_conformance::conformance!(Circular, redis);
}

mod lrem {
    use relq_conformance::own::CircularLrem;

    relq_conformance::conformance!(CircularLrem, redis);
}
