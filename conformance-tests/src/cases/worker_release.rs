//! Releasing a worker gives back its jobs at once (R24).

use std::time::Duration;

use relq_core::{Disposition, NewJob, operator::JobState};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            delivers, expect_exactly, full_job, leased_at_rest, listed, numbered,
            payloads,
        },
        store::Store,
    },
    proxy::Fault,
};

async fn release_worker(actor: &Actor) -> u64 {
    actor.release_worker(actor.worker()).await.expect("the release is answered").jobs
}

case!(release_gives_back_at_once: R24);
/// A release gives back the worker's jobs at once, and returns how many.
async fn release_gives_back_at_once(store: &Store) {
    let (leaver, other) = (store.actor("w1").await, store.actor("w2").await);
    leaver.store(numbered(3)).await;
    leaver.take(2).await;

    assert_eq!(release_worker(&leaver).await, 2);

    let taken = other.take(3).await;
    expect_exactly(payloads(&taken), numbered(3));
    assert!(taken.iter().all(|one| one.attempt() == 1), "not counted");
}

case!(release_gives_back_the_unseen: R24 R22);
/// A worker claims jobs, and the reply to the claim is lost. A release of the worker
/// gives back these jobs too.
async fn release_gives_back_the_unseen(store: &Store) {
    let actor = store.actor("w1").await;
    actor.store(numbered(40)).await;
    for step in 0..40 {
        let claim = actor.take(1);
        let _ = tokio::time::timeout(Duration::from_micros(step * 20), claim).await;
    }

    let before = leased_at_rest(&actor).await;

    assert_eq!(release_worker(&actor).await, before);
    let taken = actor.take(40).await;
    assert!(taken.iter().all(|one| one.attempt() == 1), "not counted");
    expect_exactly(payloads(&taken), numbered(40));
}

case!(release_touches_no_namesake: R24);
/// A release gives back only the jobs of its own worker, even if the worker's id is the
/// beginning of another worker's id.
async fn release_touches_no_namesake(store: &Store) {
    let leaver = store.actor("w").await;
    let others =
        ["w1", "w:1", "w-1", "W", "aw", "w."].map(|name| leaver.acting_as(name));
    leaver.store(numbered(7)).await;
    leaver.take_one().await;
    let mut held = Vec::new();
    for other in &others {
        held.push(other.take_one().await);
    }

    assert_eq!(release_worker(&leaver).await, 1);

    for (other, held) in others.iter().zip(&held) {
        other.finish(held).await;
    }
}

case!(release_touches_no_longer_name: R24);
/// A release of `host:1:2` does not touch the jobs of `host:1`.
async fn release_touches_no_longer_name(store: &Store) {
    let (short, long) = (store.actor("host:1").await, store.actor("host:1:2").await);
    short.store(numbered(2)).await;
    let held = short.take_one().await;
    long.take_one().await;

    assert_eq!(release_worker(&long).await, 1);

    short.finish(&held).await;
}

case!(a_second_release_is_fine: R24);
/// A release of a worker that holds no jobs changes nothing. So a second release is
/// harmless.
async fn a_second_release_is_fine(store: &Store) {
    let actor = store.actor("worker").await;
    assert_eq!(release_worker(&actor).await, 0);
    actor.store_one("job").await;
    actor.take_one().await;

    assert_eq!(release_worker(&actor).await, 1);

    assert_eq!(release_worker(&actor).await, 0);
}

case!(release_takes_nothing_from_a_successor: R24 R7);
/// A worker lost the lease of a job, and another worker holds the job now. A release of
/// the first worker does not give that job back.
async fn release_takes_nothing_from_a_successor(store: &Store) {
    let (late, successor) = (store.actor("w1").await, store.actor("w2").await);
    late.store_one("job").await;
    late.take_one_briefly().await;
    store.outlast_brief_leases().await;
    successor.recover_all().await;
    let held = successor.take_one().await;

    assert_eq!(release_worker(&late).await, 0);

    successor.finish(&held).await;
}

case!(release_gives_back_nothing_settled: R24);
/// A release does not give back jobs that the worker has settled.
async fn release_gives_back_nothing_settled(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(3)).await;
    let held = actor.take(3).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], Disposition::Discard).await;

    assert_eq!(release_worker(&actor).await, 1);

    delivers(&actor, [held[2].payload.clone()]).await;
}

case!(release_gives_back_thousands: R24);
/// A release gives back all jobs of the worker, even if there are more than one step of
/// the backend can handle.
async fn release_gives_back_thousands(store: &Store) {
    let actor = store.actor("worker").await;
    let many = 8_500;
    for batch in numbered(many).chunks(500) {
        actor.store(batch.to_vec()).await;
    }
    for _ in 0..many / 500 {
        assert_eq!(actor.take(500).await.len(), 500);
    }

    assert_eq!(release_worker(&actor).await, many as u64);

    delivers(&actor, numbered(many)).await;
}

/// How many commands of a release the next case lets fail: more than any backend sends.
const COMMANDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

case!(an_interrupted_release_hides_no_job: R23 R24 @ redis);
/// A release fails at one of its commands. Whatever it has done before that, each job is
/// listed where the stats count it, and a second release gives back the rest.
async fn an_interrupted_release_hides_no_job(store: &Store) {
    let operator = store.actor("operator").await;
    for (command, name) in (1..).zip(COMMANDS) {
        let leaver = store.actor(name).await;
        for job in [NewJob::new("plain"), leaver.class().fit(full_job(name))] {
            leaver.store_one(job).await;
        }
        assert_eq!(leaver.take(2).await.len(), 2, "R1: both jobs are claimed");
        store.inject(name, command, Fault::Error("ERR the suite says so".to_owned()));

        // It succeeds if the backend sends fewer commands.
        _ = leaver.release_worker(leaver.worker()).await;

        store.heal().await;
        assert_listed_as_counted(&operator, name).await;
        leaver.release_worker(leaver.worker()).await.expect("answered");
        delivers(&operator, ["plain", name]).await;
    }
}

/// Asserts that the jobs of each state that are listed are as many as the stats count.
async fn assert_listed_as_counted(operator: &Actor, command: &str) {
    let stats = operator.figures().await;
    for (state, counted) in [
        (JobState::Scheduled, stats.scheduled),
        (JobState::Ready, stats.ready),
        (JobState::Leased, stats.leased),
        (JobState::Dead, stats.dead),
    ] {
        let listed = listed(&operator.list(state, 10).await);
        let state = state.as_str();
        assert_eq!(
            listed.len() as u64,
            counted,
            "R23: the {state} jobs that are listed after command {command}: {listed:?}"
        );
    }
}

case!(a_worker_may_claim_after_release: R9 R24);
/// A worker may claim again after its release.
async fn a_worker_may_claim_after_release(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    actor.take_one().await;
    release_worker(&actor).await;

    let held = actor.take_one().await;

    actor.finish(&held).await;
    assert_eq!(release_worker(&actor).await, 0);
}
