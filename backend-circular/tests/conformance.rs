//! The conformance suite, run on this backend for each way in which finished jobs leave
//! the ring.

use std::process::ExitCode;

use relq_conformance::{
    Profile, Tests,
    own::{Circular, CircularLrem},
};

fn main() -> ExitCode {
    let mark = Tests::conformance::<Circular>(Profile::Redis).named("mark");
    let lrem = Tests::conformance::<CircularLrem>(Profile::Redis).named("lrem");
    mark.and(lrem).run()
}
