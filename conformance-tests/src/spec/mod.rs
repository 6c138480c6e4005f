//! Random operations by several actors, compared with a reference model.
//!
//! ```text
//!  draw    a sequence of operations of a producer, two workers, an operator and a
//!          reaper, some with a fault at one of their steps
//!  run     each operation on the backend and in the reference; after each, while
//!          no call is running, check the stats and every job, and after some the audit
//!  end     late commands arrive, leases and delays end, recover, drain: no job is
//!          lost, and none ran twice without a reason
//!  shrink  a sequence that breaks a rule to a short one, printed as one line
//! ```
//!
//! **The reference** keeps the set of possible states of each job
//! (`possible_state.rs`). An answer that arrived rules out states. A call whose answer
//! was lost adds the states that it may have caused. If no possible state of a job is
//! left, the backend has broken a rule. The effects of one such call on several jobs are
//! linked: its jobs were stored together (R5), and settlements of one kind were applied
//! together (R8). Without a fault a job has one possible state, and the reference
//! predicts every answer exactly. The only exceptions are those that the contract leaves
//! open: whether a due job is already ready, whether a settlement after the end of its
//! lease counts, when an expired job is buried, and the order of jobs that returned in
//! two calls.
//!
//! **Jobs.** After each operation, every field of every job is read and compared with the
//! possible states of the job, its times and its last error included (`viewing.rs`).
//!
//! **Batches.** Where a backend has batches, sequences also create, fill, change, seal
//! and cancel them. The reference keeps the possible states of each batch, derives from
//! the states of its pieces when it completes, and reads every status after each
//! operation (`batching.rs`, `batch_checks.rs`).
//!
//! **Schedules.** Where a backend has schedules, sequences also store, replace and remove
//! them and push their ticks. The reference keeps the possible states of each schedule,
//! and reads all of them after each operation (`scheduling.rs`). The job of a tick whose
//! reply was lost is stored if and only if the tick is recorded.
//!
//! **Results.** Where a backend keeps results, jobs ask for them, and workers report
//! progress and end jobs with results. The reference derives the possible results of each
//! job from its states, and reads all results after each operation (`resulting.rs`).
//!
//! **Followers.** Where a backend has followers, a second set of sequences pushes chains of
//! jobs that follow each other. The reference derives the possible states of a held job
//! from those of its leader (`following.rs`).
//!
//! **Look-ups.** Where a backend finds jobs by their ids, a third set of sequences looks
//! jobs up, runs scheduled ones now, and lists workers that have reported
//! (`inspecting.rs`).
//!
//! **The faults**: `before`, `after` and `ghost` kill the actor, and a new actor takes
//! its place. `cut-before` and `cut-after` break its connection. `loading` and `oom`
//! are error replies of the server. An embedded store has no proxy and runs without
//! faults.
//!
//! **Replay.** All randomness is seeded and time is virtual, so a sequence does the
//! same in each run:
//!
//! ```text
//! RELQ_REPLAY='p push j; a claim 1 l1 !after1; - advance 4' \
//!   cargo test -p relq-zset --test conformance every_sequence -- --nocapture
//! ```
//!
//! runs this sequence and prints the possible states of each job after each operation
//! (`operation/text.rs` describes the format). `PROPTEST_CASES` sets the number of
//! sequences, and `PROPTEST_RNG_SEED` the seed.
//!
//! Each run begins with the sequences that once found a bug (`pinned.rs`). A
//! separate run combines each option of a job with each other option, each state and
//! each call (`crossed.rs`): every pair or, with `RELQ_CROSSED=3`, every triple. Triples
//! are only run by hand.

mod actors;
mod batch_checks;
mod batching;
pub(crate) mod caller;
mod claim_order;
mod claiming;
pub(crate) mod class;
#[cfg(test)]
#[path = "tests/classes.rs"]
mod classes;
mod concluding;
mod covering;
mod crossed;
pub(crate) mod draft;
pub(crate) mod drained;
mod duplicates;
mod fingerprint;
mod following;
mod inspecting;
mod last_error;
pub(crate) mod line;
mod operating;
pub(crate) mod operation;
mod pinned;
mod possible_state;
pub(crate) mod pushing;
pub(crate) mod ready_order;
pub(crate) mod recorded;
pub(crate) mod reference;
mod restoring;
pub(crate) mod resulting;
#[cfg(test)]
#[path = "tests/results.rs"]
mod results;
mod returning;
mod run;
mod runner;
#[cfg(test)]
#[path = "tests/schedules.rs"]
mod schedules;
pub(crate) mod scheduling;
pub(crate) mod sequence;
mod settling;
mod stats;
mod strategy;
mod viewing;

pub use run::{Summary, judge, judge_crossed, judge_random, run, run_crossed};

/// The name of the test of random sequences.
pub(crate) const NAME: &str = "every_sequence_goes_by_the_rules";

/// The name of the test of the crossed sequences, which combine options, states and
/// calls.
pub(crate) const CROSSED: &str = "every_pair_of_options_goes_by_the_rules";

/// The rules that the reference model checks. It checks no rule about operations that
/// its sequences do not contain.
pub(crate) const RULES: &[&str] = &[
    "R1", "R2", "R3", "R4", "R5", "R6", "R7", "R8", "R9", "R10", "R11", "R13", "R14",
    "R15", "R16", "R17", "R21", "R22", "R23", "R24", "R26", "R27", "R28", "R29", "R30",
    "R31", "R32", "R33", "R34", "B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8", "B9",
    "B10",
];
