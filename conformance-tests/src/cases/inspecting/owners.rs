//! Each job is shown with its own batch and its own leader, beside jobs of others (R23, R31).

use relq_core::{
    Disposition, JobId, NewJob,
    batch::{BatchId, NewBatch},
    operator::{JobLookup, JobState, JobView, RunNow, StateDetail},
    outcome::Settled,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, retry_after},
        store::Store,
        times::HELD,
    },
    spec::operation::STATES,
};

/// The payloads of one owner's jobs. The first word names the batch or the leader, and the
/// second one the state into which the job is brought.
fn jobs_of(owner: &str) -> impl Iterator<Item = NewJob> {
    let states = ["ready", "scheduled", "leased", "dead"];
    states.into_iter().map(move |state| NewJob::new(format!("{owner} {state}")))
}

/// The words of a payload.
fn words(job: &JobView) -> (&str, &str) {
    let text = std::str::from_utf8(&job.payload).expect("the payload is text");
    text.split_once(' ').expect("the payload has two words")
}

/// Brings each ready job into the state that its payload names.
async fn bring_into_states(actor: &Actor) {
    for held in actor.take(100).await {
        let disposition = match held.payload.split(|byte| *byte == b' ').nth(1) {
            Some(b"ready") => Disposition::GiveBack,
            Some(b"scheduled") => retry_after(HELD),
            Some(b"dead") => dead("no"),
            _ => continue,
        };
        assert_eq!(actor.say(&held, disposition).await, Settled::Applied, "{held:?}");
    }
}

/// Asserts that a job is shown in the state of its payload, and with its batch.
fn assert_own_batch(job: &JobView) {
    let (owner, state) = words(job);
    assert_eq!(job.detail.state().as_str(), state, "R23: {job:?}");
    let own = Some(owner).filter(|owner| *owner != "plain");
    let shown = job.batch.as_ref().map(BatchId::as_str);
    // The record of the batch of a dead job may be gone.
    let is_gone = state == "dead" && shown.is_none();
    assert!(shown == own || is_gone, "B1: shown with the batch {shown:?}: {job:?}");
}

case!(each_job_is_shown_with_its_own_batch: R23 R31 B1 => Inspect Batches);
/// Jobs of two batches and of none, in every state. Every listing and every look-up shows
/// each with its own batch.
async fn each_job_is_shown_with_its_own_batch(store: &Store) {
    let actor = store.actor("operator").await;
    for name in ["one", "two"] {
        let batch = BatchId::new(name).expect("a valid id");
        actor.make(&NewBatch::new(batch.clone())).await;
        actor.fill(&batch, jobs_of(name)).await;
    }
    actor.store(jobs_of("plain")).await;
    bring_into_states(&actor).await;

    for state in STATES {
        for jobs in [actor.list(state, 2).await, actor.list_newest(state, 2).await] {
            assert_eq!(jobs.len(), 3, "R23: one {} job of each", state.as_str());
            jobs.iter().for_each(assert_own_batch);
        }
        for job in actor.list(state, 2).await {
            let id = job.id.expect("a job of relq has an id");
            if let JobLookup::Stored(record) = actor.look_up(&id).await {
                assert_eq!(record.job.id, Some(id), "R31");
                assert_own_batch(&record.job);
            }
        }
    }
}

case!(each_follower_is_shown_with_its_own_leader: R30 R31 R32 => Inspect Followers Results Delay);
/// Followers of two leaders, with different delays, beside a plain scheduled job. A call that
/// runs one of them now names its leader.
async fn each_follower_is_shown_with_its_own_leader(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("plain scheduled").delay(HELD)).await;
    let mut wanted = Vec::new();
    for (number, name) in (1..).zip(["one", "two"]) {
        let leader = NewJob::new(format!("{name} leased")).keep_result(HELD);
        let leader = actor.store_one(leader).await;
        let delay = number * HELD;
        let follower = NewJob::new(format!("{name} scheduled")).delay(delay);
        let follower = actor.store_one(follower.after(leader.clone())).await;
        wanted.push((follower, StateDetail::Following { leader, delay }));
    }
    actor.take(2).await;

    let following = |job: &JobView| match &job.detail {
        detail @ StateDetail::Following { .. } => {
            Some((job.id.clone().expect("a job of relq has an id"), detail.clone()))
        }
        _ => None,
    };
    let shown = |jobs: Vec<JobView>| -> Vec<(JobId, StateDetail)> {
        assert_eq!(jobs.len(), 3, "R23");
        jobs.iter().filter_map(following).collect()
    };
    let mut served = shown(actor.list(JobState::Scheduled, 2).await);
    let mut newest = shown(actor.list_newest(JobState::Scheduled, 2).await);
    newest.reverse();
    assert_eq!(newest, served, "R31: newest first is the reverse");
    // Held jobs have no due time, so they are in any order.
    served.sort_by(|one, other| one.0.cmp(&other.0));
    wanted.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(served, wanted, "R30: as served");
    for (id, detail) in wanted {
        assert_eq!(actor.record(&id).await.job.detail, detail, "R31: {id}");
        let StateDetail::Following { leader, .. } = detail else {
            panic!("{detail:?}")
        };
        assert_eq!(actor.run_now(&id).await, RunNow::Following { leader }, "R32: {id}");
    }
}
