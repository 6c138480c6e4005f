//! Checks, in each mode, that the user in the README's ACL line has the rights that the
//! backend needs, and no more.

relq_conformance::acl!(
    relq_conformance::own::ProcessingList,
    relq_conformance::own::ProcessingListShared,
);
