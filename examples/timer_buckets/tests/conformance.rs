//! Runs the conformance suite on this backend with the rights of the user in its
//! README, and runs the tests of server faults.

mod subject;

use std::process::ExitCode;

use relq_conformance::{Tests, acl::Readme};
use subject::TimerBuckets;

fn main() -> ExitCode {
    let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    let server_faults = Tests::server_faults::<TimerBuckets>().named("server_faults");
    Tests::conformance_as::<TimerBuckets>(readme.user()).and(server_faults).run()
}
