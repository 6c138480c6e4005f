//! The rules that every backend keeps, judged on this one, in each of the ways in which
//! what is done leaves the ring.

mod mark {
    use relq_conformance::own::Circular;

    relq_conformance::conformance!(Circular, redis);
}

mod lrem {
    use relq_conformance::own::CircularLrem;

    relq_conformance::conformance!(CircularLrem, redis);
}
