//! Runs the conformance suite on this backend with the rights of the user in its
//! README, and runs the tests of server faults.

mod subject;

use std::process::ExitCode;

use relq_conformance::{Tests, acl::Readme};
use subject::TimerBuckets;

fn main() -> ExitCode {
    let readme = Readme::at(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
    // The backends of relq run every sweep and every fault of the server in each run. Here a
    // third is enough, and the random sequences without those that combine options.
    let third = 3.try_into().expect("not zero");
    let server_faults = Tests::server_faults::<TimerBuckets>()
        .named("server_faults")
        .sampled("server_faults::", third);
    let cases = Tests::conformance_as::<TimerBuckets>(readme.user())
        .sampled("steps::", third)
        .sampled("model::", third);
    cases.and(server_faults).run()
}
