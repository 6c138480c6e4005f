//! Runs the conformance suite on this backend in each of its modes, as the Redis user
//! of the README's ACL line.

use std::process::ExitCode;

use relq_conformance::{
    Tests,
    acl::Readme,
    own::{ProcessingList, ProcessingListShared},
};

fn main() -> ExitCode {
    let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let per_worker =
        Tests::conformance_as::<ProcessingList>(readme.user()).named("per_worker");
    // The modes differ in the lists of leased jobs alone, so half of the sweeps are enough
    // for one.
    let half = 2.try_into().expect("not zero");
    let shared = Tests::conformance_as::<ProcessingListShared>(readme.user())
        .sampled("steps::", half)
        .named("shared");
    per_worker.and(shared).run()
}
