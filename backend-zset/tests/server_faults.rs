//! Faults of the server, and what they mean for this backend and its waiting claims.

use std::process::ExitCode;

use relq_conformance::{Tests, own::Zset};

fn main() -> ExitCode {
    Tests::server_faults::<Zset>().run()
}
