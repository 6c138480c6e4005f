//! Tests a backend with exactly the rights that its README asks for.
//!
//! A README names a user in one line, written as in a server's ACL file:
//! `user NAME RULE…`. `Q` in its key and channel patterns stands for the name of the
//! queue. The line lists the commands that the backend sends to the server or names in
//! its scripts. [`acl!`](crate::acl!) generates tests that the line is sufficient and
//! contains nothing unneeded. This is a complete `tests/acl.rs`:
//!
//! ```text
//! relq_conformance::acl!(MySubject);
//! ```
//!
//! With `RELQ_WRITE_ACL=1` in the environment, these tests write the commands to the
//! README:
//!
//! ```text
//! RELQ_WRITE_ACL=1 cargo test -p MY-PACKAGE --test acl
//! ```
//!
//! The target of the suite runs every case as that user:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use relq_conformance::{Subject, async_trait};
//! # use relq_core::{Error, Queue, QueueName, environment::Environment};
//! # #[derive(Default)]
//! # struct Mine;
//! # #[async_trait]
//! # impl Subject for Mine {
//! #     async fn connect(
//! #         &self,
//! #         _: &str,
//! #         _: &QueueName,
//! #         _: &Environment,
//! #     ) -> Result<Arc<dyn Queue>, Error> { panic!("any backend's own") }
//! # }
//! use relq_conformance::{Tests, acl::Readme};
//!
//! fn main() -> std::process::ExitCode {
//!     let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
//!     Tests::conformance_as::<Mine>(readme.user()).run()
//! }
//! ```
//!
//! The parts can also be used one by one:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use relq_conformance::{Subject, async_trait};
//! # use relq_core::{Error, Queue, QueueName, environment::Environment};
//! # #[derive(Default)]
//! # struct Mine;
//! # #[async_trait]
//! # impl Subject for Mine {
//! #     async fn connect(
//! #         &self,
//! #         _: &str,
//! #         _: &QueueName,
//! #         _: &Environment,
//! #     ) -> Result<Arc<dyn Queue>, Error> { panic!("any backend's own") }
//! # }
//! use relq_conformance::acl::{User, denied};
//!
//! let user = User::in_readme("# mine\n\nuser mine on >secret ~Q +lpush").unwrap();
//! assert_eq!(denied::<Mine>(&user, |_| true), [""; 0]);
//! ```

mod commands;
mod readme;
mod refusals;
mod restricted;
mod trial;
mod user;
mod watch;

pub use readme::Readme;
pub use refusals::{allowed_beside, foreign_keys_reached, trespass, untold};
pub use restricted::Restricted;
pub(crate) use trial::in_case;
pub use trial::{Trial, denied};
pub use user::User;

use crate::{Case, Subject};

/// The cases by which [`needless`] finds unneeded patterns. Together they use each kind
/// of key and channel, so one of them fails if the user lacks a pattern that it needs.
const TELLING: [&str; 3] = [
    "isolation::plain_pushes_are_jobs",
    "no_loss::a_leased_job_is_kept",
    "waiting::a_push_wakes",
];

/// Returns the user's key and channel patterns that the backend does not need. A
/// pattern is not needed if three cases, which use each kind of key and channel, pass
/// without it.
pub fn needless<S: Subject + Default>(user: &User) -> Vec<String> {
    let patterns = user.rules().iter().filter(|rule| rule.starts_with(['~', '&', '%']));
    let is_telling = |case: &Case| TELLING.contains(&case.id);
    let is_needless =
        |right: &&String| denied::<S>(&user.without(right), is_telling).is_empty();
    patterns.filter(is_needless).cloned().collect()
}

/// Generates the tests that the first user in a package's README has all the rights
/// that its backend needs, and no more. A backend with several modes has one subject
/// for each mode.
#[macro_export]
macro_rules! acl {
    ($first:ty $(, $other:ty)* $(,)?) => {
        fn readme() -> $crate::acl::Readme {
            $crate::acl::Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        }

        /// A [trial]($crate::acl::Trial) passes with the README's user, and the user's
        /// commands are exactly those that the server runs during the trial.
        #[test]
        fn the_readmes_user_has_the_commands_that_are_run_and_no_others() {
            readme().judge_commands(|user| {
                let trial = $crate::acl::Trial::of::<$first>(user);
                $(let trial = trial.and($crate::acl::Trial::of::<$other>(user));)*
                trial
            });
        }

        /// The server refuses the README's user each command that the README does not
        /// name.
        #[test]
        fn every_other_command_is_refused() {
            assert_eq!($crate::acl::allowed_beside(&readme().user()), [""; 0]);
        }

        /// The README gives a reason for each of the user's commands that the server
        /// classifies as dangerous.
        #[test]
        fn each_dangerous_command_is_explained() {
            assert_eq!(readme().unexplained(), [""; 0]);
        }

        /// None of the user's commands reaches a key of another queue.
        #[test]
        fn the_keys_of_other_queues_are_refused() {
            assert_eq!($crate::acl::foreign_keys_reached(&readme().user()), [""; 0]);
        }

        /// The README's user needs each of its key patterns: without one of them, a
        /// case fails.
        #[test]
        fn each_pattern_of_keys_is_needed() {
            let needless = $crate::acl::needless::<$first>(&readme().user());
            assert_eq!(needless, [""; 0], "nothing fails without these");
        }

        /// R21: a call of a user that lacks a right returns an error by which a worker ends
        /// after some time, also if a script meets the refusal. Only a person can help.
        #[test]
        fn a_missing_right_is_told() {
            assert_eq!($crate::acl::untold::<$first>(&readme().user()), [""; 0]);
            $(assert_eq!($crate::acl::untold::<$other>(&readme().user()), [""; 0]);)*
        }

        /// A push to a queue that the user may not reach returns an error that says so.
        #[test]
        fn the_readmes_user_is_kept_out_of_other_queues() {
            let refused = $crate::acl::trespass::<$first>(&readme().user());
            let is_told = matches!(refused, relq_core::Error::Denied { .. });
            assert!(is_told, "{}", refused.full_message());
        }
    };
}
