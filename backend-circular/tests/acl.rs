//! The user that the README names has the rights that the backend needs, and no more.

use conformance_tests::{
    acl::denied,
    own::{Circular, CircularLrem},
};

// For a database other than the first, and the connection's name.
conformance_tests::acl!(Circular, beside "+@connection");

/// The same rights do where what is done is removed at once.
#[test]
fn the_readmes_user_may_finish_either_way() {
    let settles = |id: &str| id.starts_with("one_holder::");
    assert_eq!(denied::<CircularLrem>(&user(), |case| settles(case.id)), [""; 0]);
}
