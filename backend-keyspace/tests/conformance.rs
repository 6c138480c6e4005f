//! The conformance suite, run on this backend.

use std::process::ExitCode;

use relq_conformance::{Profile, Tests, own::Keyspace};

fn main() -> ExitCode {
    Tests::conformance::<Keyspace>(Profile::Redis).run()
}
