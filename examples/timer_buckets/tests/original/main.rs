//! Tests of the faults that the explorer finds in the original form of the pattern. The
//! README shows the runs that these tests print.

mod queue;
#[path = "../subject/mod.rs"]
mod subject;

use std::sync::Arc;

use queue::Original;
use relq_conformance::{Subject, explore};
use subject::TimerBuckets;

/// Explores a scene. Returns the rule that the original form breaks, and a diagram of
/// the run.
fn failure(scene: &str, deaths: usize) -> String {
    let subject: Arc<dyn Subject> = Arc::new(Original::default());
    let explored = explore::explore(&subject, scene, deaths).expect("a known scene");
    let explored = explored.expect("the scene needs no option");
    println!("{explored}");
    explored.failure.expect("the original breaks a rule here")
}

/// Repeats a run with the given decisions. Returns the rule that the original form
/// breaks, and a diagram of the run.
fn failure_of(scene: &str, decisions: &str) -> String {
    let subject: Arc<dyn Subject> = Arc::new(Original::default());
    let wrong = explore::replay(&subject, scene, decisions);
    let wrong = wrong.expect_err("the original breaks a rule here");
    println!("{wrong}");
    wrong
}

/// R9: a job is lost if its worker dies right after its LPOP, because the list was the
/// only place that named its id.
#[test]
fn a_job_is_lost_when_its_worker_dies_after_lpop() {
    let failure = failure_of("two_workers_share_two_jobs", "a a a a b b!dies");

    let check = "in the end: CONSERVE, R23: ready or leased jobs in the stats: 0";
    assert!(failure.starts_with(check), "{failure}");
    assert!(failure.contains("dies before SADD"), "{failure}");
}

/// R12: a job that its worker puts back stays in the set of a minute, so the reaper
/// puts it back a second time.
#[test]
fn a_job_that_is_retried_is_ready_twice() {
    let failure = failure("two_workers_share_two_jobs", 0);

    let check = "in the end, `- recover 100`: REAP-ONCE, R12: requeued: 1, expected 0";
    assert!(failure.starts_with(check), "{failure}");
}

/// R12: a job that ends after the reaper has checked it and before the reaper's push is
/// put back into the queue.
#[test]
fn a_finished_job_is_put_back() {
    let failure = failure("settle_against_recover", 0);

    let check = "`r recover 5`: REAP-ONCE, R12: requeued: 1, expected 0";
    assert!(failure.starts_with(check), "{failure}");
}

/// R7: the item does not name the worker of the job, so a worker that lost its lease
/// ends the job while another worker runs it.
#[test]
fn a_late_worker_ends_the_job_of_another() {
    let failure = failure_of("settle_against_recover", "- r r r r r r b b b a b");

    assert!(failure.contains("FENCE-ACK, R7"), "{failure}");
    assert!(failure.contains("b claim 1 l0"), "{failure}");
}

/// The repaired pattern of this package keeps the rules of the contract. The test tries
/// both scenes with every order of the commands and a worker's death at any command.
#[test]
fn the_repaired_form_keeps_the_rules() {
    let subject: Arc<dyn Subject> = Arc::new(TimerBuckets);
    for scene in ["two_workers_share_two_jobs", "settle_against_recover"] {
        let explored = explore::explore(&subject, scene, 1).expect("a known scene");

        let explored = explored.expect("the scene needs no option");
        assert_eq!(explored.failure, None, "{scene}");
        println!("{explored}");
    }
}
