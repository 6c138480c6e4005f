//! Tests how this backend and its waiting claims react to faults of the server.

use std::process::ExitCode;

use relq_conformance::{Tests, own::Keyspace};

fn main() -> ExitCode {
    Tests::server_faults::<Keyspace>().run()
}
