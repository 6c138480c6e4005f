//! Probes that run in place of a case. If the backend does not support the case's
//! option, the probe checks that the option is refused and that nothing was stored. If
//! the backend does not declare the case's class, the probe checks the rule that holds
//! for all classes.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Disposition, Error, NewJob, Priority, PushToken,
    capabilities::{Capabilities, Capability, LeaseScope, Order},
    operator::{JobState, PeekRequest, WorkerReport},
    outcome::Settled,
};

use crate::harness::{
    checks::{delivers, id, key, numbered, payloads},
    store::Store,
    times::HELD,
};
use crate::spec::operation::STATES;

/// A requirement of a case: an option that the backend must support, or a class that it
/// must declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The backend supports the option.
    Option(Capability),
    /// The backend declares an order of delivery: any order, not only first in, first
    /// out.
    Order,
    /// The backend declares [`Order::Fifo`]: first in, first out.
    Fifo,
    /// The backend declares that each job has a lease of its own.
    JobLease,
}

impl Need {
    /// Returns whether a backend with these capabilities has what the case needs.
    pub fn is_met_by(self, capabilities: &Capabilities) -> bool {
        match self {
            // If priorities hold only within each part, two jobs may come in any order.
            Self::Option(Capability::Priority) => {
                capabilities.supports(Capability::Priority)
                    && capabilities.order != Order::ByPart
            }
            Self::Option(option) => capabilities.supports(option),
            Self::Order => {
                !matches!(capabilities.order, Order::Unordered | Order::ByPart)
            }
            Self::Fifo => capabilities.order == Order::Fifo,
            Self::JobLease => capabilities.lease_scope == LeaseScope::Job,
        }
    }

    fn forbidden_push(self) -> (NewJob, Option<PushToken>) {
        let job = NewJob::new("refused");
        match self {
            Self::Option(Capability::ClientIds) => (job.id(id("mine")), None),
            Self::Option(Capability::PushTokens) => {
                (job, Some(PushToken::new("mine").expect("a valid token")))
            }
            Self::Option(Capability::Delay) => (job.delay(HELD), None),
            Self::Option(Capability::Priority) => {
                (job.priority(Priority::HIGHEST), None)
            }
            Self::Option(Capability::Unique) => (job.unique(key("mine")), None),
            Self::Option(Capability::Expiry) => (job.expires_in(HELD), None),
            Self::Option(Capability::Results) => (job.keep_result(HELD), None),
            Self::Option(Capability::Followers) => (job.after(id("leader")), None),
            Self::JobLease => (job.lease(HELD), None),
            other => panic!("no case or probe for a backend without {other:?}"),
        }
    }
}

/// Runs the probe that replaces a case whose need the backend does not meet.
pub(crate) async fn instead(store: &Store, need: Need) {
    match need {
        Need::Option(Capability::BlockingWait) => polls(store).await,
        Need::Order | Need::Fifo => comes_once(store).await,
        Need::Option(Capability::Priority) if is_by_part(store).await => {
            comes_once(store).await;
        }
        Need::Option(Capability::Batches) => has_no_batches(store).await,
        Need::Option(Capability::Schedules) => has_no_schedules(store).await,
        Need::Option(Capability::Results) => keeps_no_results(store, need).await,
        Need::Option(Capability::Inspect) => finds_no_job(store).await,
        Need::Option(Capability::Restore) => restores_no_job(store).await,
        Need::Option(Capability::ReadyAge) => tells_no_age(store).await,
        _ => is_refused(store, need).await,
    }
}

async fn is_by_part(store: &Store) -> bool {
    store.actor("prober").await.capabilities().order == Order::ByPart
}

/// R21: without `BlockingWait`, a waiting claim still finds a pushed job before its
/// wait ends.
async fn polls(store: &Store) {
    let (actor, producer) = (store.actor("worker").await, store.actor("p").await);
    let wait = Duration::from_secs(30);
    let claim = tokio::spawn(async move { actor.take_waiting(1, wait).await });
    store.settled().await;

    producer.store_one("job").await;

    let (taken, _) = store.within(wait + store.response_limit(), claim).await;
    let taken = taken.expect("the claim ends");
    assert_eq!(payloads(&taken), ["job"], "R21: a claim without BlockingWait polls");
    // The probe of another need may follow, and expects an empty queue.
    producer.finish(&taken[0]).await;
}

/// R6: without a declared order, each job is delivered once, whether it was given back
/// or not.
async fn comes_once(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(20)).await;
    actor.take(7).await;
    actor.release_worker(actor.worker()).await.expect("answered");

    delivers(&actor, numbered(20)).await;
}

/// If the backend does not support batches, `batch_queue` returns `None`.
async fn has_no_batches(store: &Store) {
    let actor = store.actor("prober").await;

    assert!(actor.batch_queue().is_none(), "batches that are not supported");
}

/// If the backend does not support schedules, `schedule_queue` returns `None`.
async fn has_no_schedules(store: &Store) {
    let actor = store.actor("prober").await;

    assert!(actor.schedule_queue().is_none(), "schedules that are not supported");
}

/// If the backend keeps no results, `result_queue` returns `None`, and a push that asks
/// for one is refused. A settlement with a result is like one without.
async fn keeps_no_results(store: &Store, need: Need) {
    is_refused(store, need).await;
    let actor = store.actor("prober").await;
    assert!(actor.result_queue().is_none(), "results that are not supported");

    actor.store_one("job").await;
    let held = actor.take_one().await;
    assert!(!held.keeps_result, "R29: nobody asked for a result");
    // Other probes of the case may have finished jobs of the same queue.
    let before = actor.figures().await.finished;
    let done = Disposition::DoneWith { result: "result".into() };
    assert_eq!(actor.say(&held, done).await, Settled::Applied, "R8, R29");
    assert_eq!(actor.figures().await.finished, before + 1, "R8, R29");
}

/// If the backend finds no jobs by their ids, `inspect_queue` returns `None`, a listing
/// newest first is refused, and a report of a worker stores nothing (R31, R33). Outlines
/// are listed by every backend.
async fn finds_no_job(store: &Store) {
    let actor = store.actor("prober").await;
    assert!(actor.inspect_queue().is_none(), "R31: look-ups that are not supported");
    let job = actor.store_one("job").await;
    for state in STATES {
        let newest = PeekRequest::new(state, NonZeroU32::MIN).newest_first();
        let refused = actor.peek(&newest).await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "R31: {refused:?}");
    }
    let report = WorkerReport::new(actor.worker().clone(), NonZeroU32::MIN);
    actor.report_worker(&report).await.expect("R33: a report does nothing");
    let outline = PeekRequest::new(JobState::Ready, NonZeroU32::MIN).outline();
    let seen = actor.peek(&outline).await.expect("R31: outlines are listed");
    assert_eq!(seen.jobs.len(), 1, "R31: the outline of the job");

    actor.cancel(&job).await.expect("answered");
    assert_eq!(actor.figures().await.unfinished(), 0, "R33: nothing is stored");
}

/// If the backend does not restore jobs, `restore_queue` returns `None` (R34).
async fn restores_no_job(store: &Store) {
    let actor = store.actor("prober").await;

    assert!(actor.restore_queue().is_none(), "R34: restoring that is not supported");
    let refused = actor.capabilities().check_restore(&[]);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "R34: {refused:?}");
}

/// R27: a backend that does not know the age of the oldest ready job reports none.
async fn tells_no_age(store: &Store) {
    let actor = store.actor("prober").await;
    actor.store_one("job").await;

    assert_eq!(actor.figures().await.oldest_ready_age, None);
    delivers(&actor, ["job"]).await;
}

/// R5: a push with an unsupported option is refused with an error that names the
/// option, and nothing is stored.
async fn is_refused(store: &Store, need: Need) {
    let actor = store.actor("prober").await;
    let (job, token) = need.forbidden_push();

    let refused = actor.push(&[NewJob::new("plain"), job], token.as_ref()).await;

    let is_refused = matches!(refused, Err(Error::Unsupported { .. }));
    assert!(
        is_refused,
        "R5: a push with {need:?}, which is not supported: {refused:?}"
    );
    let stored = actor.figures().await.unfinished();
    assert_eq!(
        stored, 0,
        "R5: jobs of a push that was refused for {need:?} are stored"
    );
}
