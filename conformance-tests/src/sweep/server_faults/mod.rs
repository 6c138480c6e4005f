//! Faults of a real server, and their effects on clients that wait at it: a power cut
//! between any two of its writes, a promoted replica, outages, killed connections,
//! forgotten scripts, full memory, large jobs, long queues, and keys of another type.
//!
//! A complete `tests/server_faults.rs`, of a test with `harness = false`:
//!
//! ```text
//! fn main() -> std::process::ExitCode {
//!     relq_conformance::Tests::server_faults::<MySubject>().run()
//! }
//! ```
//!
//! These tests run in real time and without a proxy. They kill, promote and fill a
//! server, which needs no fault at a chosen command. The test of power cuts covers
//! every cut: it makes one call of each kind that writes, including those on batches,
//! and starts a server on every prefix of the append-only file that ends with a
//! complete command. The test of outages tries two lengths, and each connection of an
//! idle worker is killed once.

mod append_only_file;
mod batches;
mod bounds;
mod calls;
mod connections;
mod cost_log;
mod crash;
mod fixture;
mod foreign;
mod many;
mod memory;
mod monitor;
mod outages;
mod power;
mod replica;
mod scripts;
mod tape;

use std::pin::Pin;

use crate::{Subject, harness::runtime::block_on};
use fixture::FaultFixture;

/// The future of a test that causes one fault. It stays on the thread that runs it.
type Play<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A fault of the server: its name, and the test that causes the fault and judges its
/// result.
struct Fault {
    name: &'static str,
    play: for<'a> fn(&'a FaultFixture) -> Play<'a>,
}

/// Expands to the value of [`FAULTS`], from the names of the test functions in each
/// module.
macro_rules! faults {
    ($($topic:ident { $($name:ident)* })*) => {
        &[$($(Fault {
            name: concat!(stringify!($topic), "::", stringify!($name)),
            play: |fixture| Box::pin($topic::$name(fixture)),
        },)*)*]
    };
}

const FAULTS: &[Fault] = faults! {
    power { every_aof_prefix }
    replica {
        a_promoted_replica_goes_on
        a_master_that_comes_back_is_used_again
    }
    outages {
        an_outage_shorter_than_a_wait_is_outlived
        an_outage_longer_than_a_wait_is_outlived
    }
    connections {
        each_connection_of_an_idle_worker_may_be_killed
        a_killed_connection_heals
    }
    crash { a_killed_server_comes_back_with_every_job }
    scripts { flushed_scripts_are_sent_again }
    memory {
        a_full_server_is_drained_and_refuses_pushes
        a_full_server_completes_batches
        a_server_full_to_the_brim_is_drained_by_any_worker
    }
    bounds {
        no_request_is_long_over_large_jobs
        no_request_is_long_over_huge_jobs
        no_request_is_long_over_expired_results
    }
    many { no_request_is_long_in_a_long_queue }
    foreign {
        a_foreign_key_in_the_way_is_an_error_and_loses_nothing
        every_script_fails_whole_on_a_key_of_another_type
        every_script_fails_whole_on_a_malformed_entry
        a_count_that_is_text_keeps_no_job
    }
};

/// The tests that take a minute or more. They run only when they are asked for.
const SLOW: &[Fault] = faults! {
    many { no_request_is_long_in_a_queue_of_a_million }
};

/// The names of all faults, except the slow ones.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FAULTS.iter().map(|fault| fault.name)
}

/// The names of the slow faults.
pub(crate) fn slow_names() -> impl Iterator<Item = &'static str> {
    SLOW.iter().map(|fault| fault.name)
}

/// Runs the test of the fault of that name. [`Tests`](crate::Tests) calls it.
///
/// # Panics
/// When the backend breaks a promise, or no fault has that name.
pub fn run<S: Subject + Default>(name: &str) {
    let fault = FAULTS.iter().chain(SLOW).find(|fault| fault.name == name);
    let fault = fault.unwrap_or_else(|| panic!("there is no fault {name}"));
    block_on((fault.play)(&FaultFixture::of(S::default())));
}
