//! The user that the README names has the rights that the backend needs, and no more,
//! in each of the ways in which what is done leaves the ring.

relq_conformance::acl!(
    relq_conformance::own::Circular,
    relq_conformance::own::CircularLrem,
);
