//! The names of the metrics, and their descriptions.

use metrics::{
    Label, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge,
};
use relq_core::error::Operation;

pub(crate) const CLAIMED: &str = "relq_jobs_claimed_total";
pub(crate) const RUNNING: &str = "relq_jobs_running";
pub(crate) const WAIT: &str = "relq_job_wait_seconds";
pub(crate) const LATENCY: &str = "relq_job_latency_seconds";
pub(crate) const DURATION: &str = "relq_job_duration_seconds";
pub(crate) const ENDED: &str = "relq_jobs_ended_total";
pub(crate) const BURIED: &str = "relq_jobs_buried_total";
pub(crate) const RECOVERED: &str = "relq_jobs_recovered_total";
pub(crate) const LEASES_LOST: &str = "relq_leases_lost_total";
pub(crate) const CALLS_FAILED: &str = "relq_calls_failed_total";

/// The operations of a worker, which can fail.
const OPERATIONS: [Operation; 7] = [
    Operation::Connect,
    Operation::Claim,
    Operation::Settle,
    Operation::Extend,
    Operation::Recover,
    Operation::ReleaseWorker,
    Operation::Stats,
];

/// Tells the recorder of the process the unit and the meaning of each metric. A second
/// call changes nothing.
pub(crate) fn describe() {
    let counters = [
        (CLAIMED, "Jobs that a claim of this worker returned."),
        (ENDED, "Claimed jobs whose result is known, by outcome."),
        (BURIED, "Jobs that failed for good, without those that expired."),
        (RECOVERED, "Jobs of dead workers that this worker made ready again."),
        (LEASES_LOST, "Leases that were lost while the worker held the job."),
        (CALLS_FAILED, "Calls to the store that failed."),
    ];
    for (name, meaning) in counters {
        describe_counter!(name, Unit::Count, meaning);
    }
    let running = "Jobs that were started and whose result is not settled yet.";
    describe_gauge!(RUNNING, Unit::Count, running);
    let wait = "The time between the reply to a job's claim and its start.";
    describe_histogram!(WAIT, Unit::Seconds, wait);
    let latency =
        "The time between the push of a job and the start of its first attempt.";
    describe_histogram!(LATENCY, Unit::Seconds, latency);
    describe_histogram!(DURATION, Unit::Seconds, "How long an attempt ran.");
}

/// Sets the metrics of this queue to zero, unless they have a value. A counter that first
/// appears with the value 1 would hide its first event from an alert on its increase.
pub(crate) fn initialize(queue: &Label) {
    for name in [CLAIMED, BURIED, RECOVERED, LEASES_LOST] {
        counter!(name, vec![queue.clone()]).increment(0);
    }
    for operation in OPERATIONS {
        counter!(CALLS_FAILED, failed(queue.clone(), operation)).increment(0);
    }
    gauge!(RUNNING, vec![queue.clone()]).increment(0.0);
}

/// The labels of a failed call.
pub(crate) fn failed(queue: Label, operation: Operation) -> Vec<Label> {
    let operation = operation.to_string().replace(' ', "_");
    vec![queue, Label::new("operation", operation)]
}
