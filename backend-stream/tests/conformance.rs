//! Runs the conformance suite on this backend, with the rights of the Redis user that
//! the README names.

use std::process::ExitCode;

use relq_conformance::{Tests, acl::Readme, own::Stream};

fn main() -> ExitCode {
    let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    Tests::conformance_as::<Stream>(readme.user()).run()
}
