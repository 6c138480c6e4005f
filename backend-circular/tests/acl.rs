//! The user that the README names has the rights that the backend needs, and no more,
//! in each of the ways in which what is done leaves the ring.

conformance_tests::acl!(
    conformance_tests::own::Circular,
    conformance_tests::own::CircularLrem,
);
