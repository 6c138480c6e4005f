//! The jobs that are not run now (R32).

use relq_core::{
    Disposition, NewJob,
    operator::{JobState, RunNow, StateDetail},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, numbered, payloads, retry_after},
        store::{STEP, Store},
        times::HELD,
    },
    spec::operation::STATES,
};

/// How many jobs are in each state.
async fn counts(actor: &Actor) -> Vec<usize> {
    let mut counts = Vec::new();
    for state in STATES {
        counts.push(actor.list(state, 100).await.len());
    }
    counts
}

case!(a_held_job_is_not_run: R32 R30 => Inspect Followers ClientIds);
/// A held job stays held, and the answer names its leader.
async fn a_held_job_is_not_run(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    let held = NewJob::new("held").id(id("held")).after(id("leader"));
    actor.store_one(held.delay(HELD)).await;
    let before = counts(&actor).await;

    let answer = actor.run_now(&id("held")).await;

    assert_eq!(answer, RunNow::Following { leader: id("leader") }, "R32");
    assert_eq!(counts(&actor).await, before, "R32: nothing was changed");
    let held = actor.record(&id("held")).await.job;
    let wanted = StateDetail::Following { leader: id("leader"), delay: HELD };
    assert_eq!(held.detail, wanted, "R30: it is held as before");
}

case!(a_released_follower_is_run: R32 R30 => Inspect Followers ClientIds);
/// A follower whose delay has begun is run now like any delayed job.
async fn a_released_follower_is_run(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    let follower = NewJob::new("follower").after(id("leader")).delay(HELD);
    let follower = actor.store_one(follower).await;
    actor.finish(&actor.take_one().await).await;

    assert_eq!(actor.run_now(&follower).await, RunNow::Ready, "R32");

    assert_eq!(payloads(&actor.take(10).await), ["follower"], "R32");
}

case!(an_orphan_is_not_run: R32 R30 => Inspect Followers ClientIds);
/// A follower whose leader was discarded is not run, whether it is cancelled already or
/// not.
async fn an_orphan_is_not_run(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    let many = STEP.get() as usize * 4;
    let followers =
        numbered(many).into_iter().map(|one| NewJob::new(one).after(id("leader")));
    let followers = actor.store(followers).await;
    actor.say(&actor.take_one().await, Disposition::Discard).await;

    for follower in &followers {
        let answer = actor.run_now(follower).await;
        assert_ne!(answer, RunNow::Ready, "R30: {follower} is never delivered");
    }

    actor.recover_all().await;
    assert_eq!(actor.take(10).await, [], "R30");
    assert_eq!(actor.figures().await.cancelled, many as u64, "R30");
}

case!(no_other_job_is_run: R32 => Inspect ClientIds);
/// A job that is ready, leased or dead, one that has ended, and an unknown one are not
/// run, and nothing is changed: a scheduled job is not run in place of them.
async fn no_other_job_is_run(store: &Store) {
    let actor = store.actor("worker").await;
    let named = |name: &'static str| NewJob::new(name).id(id(name));
    for (name, disposition) in [
        ("done", Disposition::Done),
        ("dead", dead("no")),
        ("scheduled", retry_after(HELD)),
    ] {
        actor.store_one(named(name)).await;
        actor.say(&actor.take_one().await, disposition).await;
    }
    actor.store_one(named("leased")).await;
    let leased = actor.take_one().await;
    actor.store_one(named("ready")).await;
    let before = counts(&actor).await;

    for name in ["done", "dead", "leased", "ready", "unknown", "*"] {
        let answer = actor.run_now(&id(name)).await;
        assert_eq!(answer, RunNow::NotScheduled, "R32: the job {name}");
    }

    assert_eq!(counts(&actor).await, before, "R32: nothing was changed");
    actor.finish(&leased).await;
}

case!(a_second_call_finds_nothing: R32 => Inspect Delay);
/// A second call finds no scheduled job, so the job is delivered once.
async fn a_second_call_finds_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    actor.run_now(&job).await;

    assert_eq!(actor.run_now(&job).await, RunNow::NotScheduled, "R32");

    assert_eq!(actor.list(JobState::Scheduled, 10).await, [], "R32");
    assert_eq!(payloads(&actor.take(10).await), ["job"], "R32");
}
