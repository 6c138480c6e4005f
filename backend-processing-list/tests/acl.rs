//! The user that the README names has the rights that the backend needs, and no more.

mod subject;

use conformance_tests::{
    Case, Subject,
    acl::{User, denied},
};
use subject::{PerWorker, Shared};

fn user() -> User {
    let user = User::in_readme(include_str!("../README.md"));
    user.expect("the README names a user")
}

/// Every case of the suite passes with the rights of that user.
#[test]
fn the_readmes_user_may_do_all_that_a_worker_needs() {
    assert_eq!(denied::<PerWorker>(&user(), |_| true), [""; 0]);
}

/// The same where workers share a list.
#[test]
fn the_readmes_user_may_do_all_that_sharing_workers_need() {
    assert_eq!(denied::<Shared>(&user(), |_| true), [""; 0]);
}

/// Each of the user's rights is needed: without it, something fails.
#[test]
fn the_readmes_user_may_do_no_more() {
    assert_eq!(needless::<PerWorker>(), [""; 0], "nothing fails without these");
    assert_eq!(needless::<Shared>(), [""; 0], "nothing fails without these");
}

fn needless<S: Subject + Default>() -> Vec<String> {
    let is_telling = |case: &Case| {
        ["neighbours::plain_pushes_are_jobs", "waiting::a_push_wakes"]
            .contains(&case.id)
    };
    let user = user();
    let rights = user.rules().iter().filter(|rule| rule.starts_with(['~', '+']));
    let is_needless =
        |right: &&String| denied::<S>(&user.without(right), is_telling).is_empty();
    rights.filter(is_needless).cloned().collect()
}
