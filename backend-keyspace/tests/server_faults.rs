//! Faults of the server, and their effect on this backend and on its waiting claims.

use std::process::ExitCode;

use relq_conformance::{Tests, own::Keyspace};

fn main() -> ExitCode {
    Tests::server_faults::<Keyspace>().run()
}
