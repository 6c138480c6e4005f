//! Tests of the faults that the explorer finds in the original form of the pattern. The
//! README shows the runs that these tests print.

mod queue;
#[path = "../subject/mod.rs"]
mod subject;

use std::sync::Arc;

use queue::Original;
use relq_conformance::{Subject, explore};
use subject::BySadd;

/// Explores a scene. Returns the rule that the original form breaks, and a diagram of
/// the run.
fn failure(scene: &str, deaths: usize) -> String {
    let subject: Arc<dyn Subject> = Arc::new(Original::default());
    let explored = explore::explore(&subject, scene, deaths).expect("a known scene");
    let explored = explored.expect("the scene needs no option");
    println!("{explored}");
    explored.failure.expect("the original breaks a rule here")
}

/// R9: a worker that dies right after its SADD leaves an id that no worker may claim, and
/// that no recovery finds.
#[test]
fn a_job_is_lost_when_its_worker_dies_after_sadd() {
    let failure = failure("two_workers_share_two_jobs", 1);

    let check = "in the end, `- recover 100`: REAP-ONCE, R12: requeued: 0, expected 1";
    assert!(failure.starts_with(check), "{failure}");
    assert!(failure.contains("dies before SET"), "{failure}");
}

/// R7: a reaper frees a claim while its worker finishes the job, and the next worker
/// runs the job again.
#[test]
fn a_finished_job_runs_again() {
    let failure = failure("settle_against_recover", 0);

    assert!(failure.contains("FENCE-ACK, R7"), "{failure}");
    assert!(failure.contains("b claim 1 l0"), "{failure}");
}

/// The form of the pattern in this package keeps the rules of the contract. The test
/// tries every order of the commands in these scenes, with a worker's death at any
/// command.
#[test]
fn the_repaired_form_keeps_the_rules() {
    let subject: Arc<dyn Subject> = Arc::new(BySadd);
    for scene in ["two_workers_share_two_jobs", "settle_against_recover"] {
        let explored = explore::explore(&subject, scene, 1).expect("a known scene");

        let explored = explored.expect("the scene needs no option");
        assert_eq!(explored.failure, None, "{scene}");
        println!("{explored}");
    }
}
