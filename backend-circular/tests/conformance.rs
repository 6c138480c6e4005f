//! The conformance suite, run on this backend in each of its modes, with the rights of
//! the user that its README names.

use std::process::ExitCode;

use relq_conformance::{
    Tests,
    acl::Readme,
    own::{Circular, CircularLrem},
};

fn main() -> ExitCode {
    let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let mark = Tests::conformance_as::<Circular>(readme.user()).named("mark");
    // The modes differ in how a job is settled, so half of the sweeps are enough for one.
    let half = 2.try_into().expect("not zero");
    let lrem = Tests::conformance_as::<CircularLrem>(readme.user())
        .sampled("steps::", half)
        .named("lrem");
    mark.and(lrem).run()
}
