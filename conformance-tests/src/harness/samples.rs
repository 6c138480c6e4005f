//! Jobs with each option, and what a queue tells of them. A case compares jobs that were
//! stored in two ways.

use relq_core::{
    Delivery, NewJob, Priority,
    operator::{JobState, JobView},
    unique::OnDuplicate,
};

use super::{
    actor::Actor,
    checks::{attempts, full_job, id, key},
    times::{BRIEF, HELD},
};

/// Jobs with no option, with each option, and with all options that go together. Their
/// payloads differ. No option is set to its default, so that a lost option is seen.
pub(crate) fn samples() -> Vec<NewJob> {
    let new = |payload: &'static str| NewJob::new(payload);
    vec![
        new("plain"),
        new(""),
        NewJob::new(vec![0xf5, b'R', b'Q', 0, 255]),
        NewJob::new(vec![b'x'; 100_000]),
        new("late").delay(HELD),
        new("first").priority(Priority::HIGHEST),
        new("last").priority(Priority::LOWEST),
        new("keyed").unique(key("a key")),
        new("moves").unique_or(key("another"), OnDuplicate::Reschedule),
        new("expires").expires_in(HELD),
        new("named").id(id("mine")),
        new("headed").header("name", "value").header("other", ""),
        new("leased").lease(BRIEF),
        new("once").max_attempts(attempts(1)),
        new("kept").keep_result(HELD),
        full_job("full"),
        full_job("full and late").delay(HELD).expires_in(3 * HELD).keep_result(HELD),
    ]
}

/// The same jobs without ids and unique keys.
pub(crate) fn samples_without_names() -> Vec<NewJob> {
    let mut jobs = samples();
    for job in &mut jobs {
        (job.id, job.unique) = (None, None);
    }
    jobs
}

/// The waiting jobs of a queue as lists show them, without the ids that the backend has
/// made and without their batches.
pub(crate) async fn views(actor: &Actor) -> Vec<JobView> {
    let mut views = Vec::new();
    for state in [JobState::Scheduled, JobState::Ready] {
        views.extend(actor.list(state, 100).await);
    }
    let named: Vec<_> = samples().into_iter().filter_map(|job| job.id).collect();
    for view in &mut views {
        view.id = view.id.take().filter(|id| named.contains(id));
        view.batch = None;
    }
    views.sort_by(|one, next| one.payload.cmp(&next.payload));
    views
}

/// Claims all ready jobs, and returns what the deliveries say about them.
pub(crate) async fn delivered(
    actor: &Actor,
) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let mut taken = actor.take(100).await;
    taken.sort_by(|one, next| one.payload.cmp(&next.payload));
    let told = |Delivery {
                    payload,
                    lease,
                    max_attempts,
                    priority,
                    headers,
                    enqueued_at,
                    keeps_result,
                    ..
                }| {
        (payload, lease, max_attempts, priority, headers, enqueued_at, keeps_result)
    };
    taken.into_iter().map(told).collect()
}
