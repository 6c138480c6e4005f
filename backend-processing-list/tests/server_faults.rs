//! Injects faults into the Redis server, and checks their effect on this backend and
//! its waiting claims, in each of its modes.

use std::process::ExitCode;

use relq_conformance::{
    Tests,
    own::{ProcessingList, ProcessingListShared},
};

fn main() -> ExitCode {
    let per_worker = Tests::server_faults::<ProcessingList>().named("per_worker");
    let shared = Tests::server_faults::<ProcessingListShared>().named("shared");
    per_worker.and(shared).run()
}
