//! The user that the README names has the rights that the backend needs, and no more.

mod subject;

use conformance_tests::acl::{User, denied};
use subject::Stream;

fn user() -> User {
    let user = User::in_readme(include_str!("../README.md"));
    user.expect("the README names a user")
}

/// Every case of the suite passes with the rights of that user.
#[test]
fn the_readmes_user_may_do_all_that_is_needed() {
    assert_eq!(denied::<Stream>(&user(), |_| true), [""; 0]);
}

/// Each of the user's rights is needed: without it, something fails.
#[test]
fn the_readmes_user_may_do_no_more() {
    let telling =
        ["neighbours::plain_pushes_are_jobs", "no_loss::a_leased_job_is_kept"];
    let rules = user().rules().to_vec();
    let rights = rules.iter().filter(|rule| rule.starts_with(['~', '&', '%', '+']));
    // For a database other than the first, and the connection's name: no case's matter.
    let rights = rights.filter(|right| *right != "+@connection");

    let needless: Vec<_> = rights
        .filter(|right| {
            let lacking = user().without(right);
            denied::<Stream>(&lacking, |case| telling.contains(&case.id)).is_empty()
        })
        .collect();

    assert_eq!(needless, [""; 0], "nothing fails without these");
}
