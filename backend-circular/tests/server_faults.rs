//! Tests how this backend and its waiting claims react to faults of the server, for
//! each way in which finished jobs leave the ring.

use std::process::ExitCode;

use relq_conformance::{
    Tests,
    own::{Circular, CircularLrem},
};

fn main() -> ExitCode {
    let mark = Tests::server_faults::<Circular>().named("mark");
    let lrem = Tests::server_faults::<CircularLrem>().named("lrem");
    mark.and(lrem).run()
}
