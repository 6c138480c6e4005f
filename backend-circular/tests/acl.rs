//! Checks that the user in the README has exactly the rights that the backend needs,
//! for each way in which finished jobs leave the ring.

relq_conformance::acl!(
    relq_conformance::own::Circular,
    relq_conformance::own::CircularLrem,
);
