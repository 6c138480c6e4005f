//! Depth 2: random operations by several actors, held against a reference model.
//!
//! ```text
//!  draw      a sequence of operations of a producer, two workers, an operator and a
//!            reaper, some faulty by a fault at one of their steps
//!  runner      each on the backend and in the reference; after each, while all is at
//!            rest, the counts and the audit
//!  end       what was late arrives, leases and delays end, recover, drain: nothing is
//!            lost, nothing ran twice without a reason
//!  shrink    a sequence that breaks a rule, to a short one, observed in one line
//! ```
//!
//! **The reference** keeps, for each job, the set of all that may be true of it
//! (`possible.rs`). An answer that was heard rules possible states out; a call whose answer was lost
//! adds what it may have done. A job without a possible state left breaks a rule. Without a fault
//! a job has one possible state, and every answer is foretold exactly but for what the contract
//! leaves open: whether a due job was made ready already, whether a settlement after the
//! end of its lease counts, when an expired job is buried, and the order of what came
//! back in two calls.
//!
//! **What strikes**: `before`, `after` and `ghost` kill the actor, who comes back as
//! another; `cut-before` and `cut-after` break its connection; `loading` and `oom` are
//! answers of the server's. An embedded store has no proxy, and is run without faults.
//!
//! **Replay.** All randomness is seeded and time is virtual, so that a sequence does the
//! same each time:
//!
//! ```text
//! RELQ_REPLAY='p push j; a claim 1 l1 !after1; - advance 4' \
//!   cargo test -p relq-zset --test conformance every_sequence -- --nocapture
//! ```
//!
//! plays this one and tells what is thought of each job after each operation
//! (`operation.rs` says how to read it). `PROPTEST_CASES` asks for more sequences than
//! usual, `PROPTEST_RNG_SEED` for others.
//!
//! Each run begins with the sequences that found something once (`pinned.rs`).

mod actors;
mod claiming;
#[cfg(test)]
#[path = "tests/classes.rs"]
mod classes;
mod draft;
mod operating;
mod operation;
mod pinned;
mod possible_state;
mod pushing;
mod reference;
mod returning;
mod run;
mod runner;
mod runner_end;
mod runner_operator;
mod runner_worker;
mod settling;
mod stats;
mod strategy;

pub use run::{Summary, judge, run};

/// What its one test is called.
pub(crate) const NAME: &str = "every_sequence_goes_by_the_rules";

/// What the model judges by: all but what it does not draw.
pub(crate) const RULES: &[&str] = &[
    "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R13", "R14",
    "R15", "R16", "R17", "R21", "R22", "R23", "R24",
];
