//! Injects faults at the Redis server, and tests their effect on this backend and on
//! its waiting claims.

use std::process::ExitCode;

use relq_conformance::{Tests, own::Stream};

fn main() -> ExitCode {
    Tests::server_faults::<Stream>().run()
}
