//! The user that the README names has the rights that the backend needs, and no more,
//! in each of its modes.

relq_conformance::acl!(
    relq_conformance::own::ProcessingList,
    relq_conformance::own::ProcessingListShared,
);
