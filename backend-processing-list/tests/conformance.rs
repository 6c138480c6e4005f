//! The conformance suite, run on this backend in each of its modes.

use std::process::ExitCode;

use relq_conformance::{
    Profile, Tests,
    own::{ProcessingList, ProcessingListShared},
};

fn main() -> ExitCode {
    let per_worker =
        Tests::conformance::<ProcessingList>(Profile::Redis).named("per_worker");
    let shared =
        Tests::conformance::<ProcessingListShared>(Profile::Redis).named("shared");
    per_worker.and(shared).run()
}
