//! The conformance suite, run on this backend.

use std::process::ExitCode;

use relq_conformance::{Profile, Tests, own::Stream};

fn main() -> ExitCode {
    Tests::conformance::<Stream>(Profile::Redis).run()
}
