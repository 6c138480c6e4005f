//! The conformance suite, run on this backend.

use std::process::ExitCode;

use relq_conformance::{Profile, Tests, own::Zset};

fn main() -> ExitCode {
    Tests::conformance::<Zset>(Profile::Redis).run()
}
