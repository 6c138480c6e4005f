//! Operators redrive, purge, cancel and list more jobs than the backend handles in one
//! step.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use relq_core::{
    Disposition, JobId, NewJob,
    capabilities::Capability,
    operator::{Cancelled, JobState, Redriven, Selection},
};

use super::{COUNTS, PAGE, assert_in_order, beside_joints, take_all, without};
use crate::{
    cases::{case, restoring::fixture::was_dead, times::now},
    harness::{
        actor::Actor,
        checks::{
            dead, drain, expect_exactly, id, key, listed, numbered, payloads,
            settle_all,
        },
        store::{STEP, Store},
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

/// Pushes `count` numbered jobs, claims them and buries them one by one. Returns their
/// ids.
async fn bury(actor: &Actor, count: usize) -> Vec<JobId> {
    let jobs = actor.store(numbered(count)).await;
    for held in take_all(actor, count).await {
        actor.say(&held, dead("never")).await;
    }
    jobs
}

/// Returns a selection of the jobs at these positions. It also contains what a backend
/// must ignore: every id a second time, and an unknown id after each.
fn selected(jobs: &[JobId], positions: &[usize]) -> Selection {
    let mut ids = Vec::new();
    for at in positions {
        ids.extend([jobs[*at].clone(), id("unknown")]);
    }
    ids.extend(positions.iter().map(|at| jobs[*at].clone()));
    Selection::Only(ids)
}

case!(a_redrive_of_several_steps_moves_all: R23);
/// A redrive of several steps makes all dead jobs ready, each once.
async fn a_redrive_of_several_steps_moves_all(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        bury(&actor, count).await;

        let redriven = actor.redrive(&Selection::All).await.expect("answered");

        assert_eq!(redriven, Redriven { moved: count as u64, duplicates: 0 });
        expect_exactly(payloads(&drain(&actor).await), numbered(count));
        assert_eq!(actor.figures().await.dead, 0);
    }
}

case!(a_redrive_beside_another_that_is_dropped_moves_all: R22 R23);
/// A redrive leaves no job dead although another redrive takes jobs out of its steps. The
/// other one is dropped, so it does not move what the first has passed over.
async fn a_redrive_beside_another_that_is_dropped_moves_all(store: &Store) {
    const ROUNDS: usize = 20;
    let actor = store.actor_in_steps("worker").await;
    let other = store.actor_in_steps("other").await;
    for _ in 0..ROUNDS {
        bury(&actor, 4 * PAGE + 1).await;

        let redriving = actor.redrive(&Selection::All);
        tokio::pin!(redriving);
        let redriven = tokio::select! {
            redriven = &mut redriving => redriven,
            _ = other.redrive(&Selection::All) => redriving.await,
        };

        redriven.expect("answered");
        assert_eq!(
            actor.figures().await.dead,
            0,
            "R23: dead jobs after a redrive of all"
        );
        actor.purge().await.expect("purged");
    }
}

case!(a_redrive_leaves_those_that_die_meanwhile: R23);
/// A redrive of all dead jobs moves those that are dead when it begins, each once.
async fn a_redrive_leaves_those_that_die_meanwhile(store: &Store) {
    redrive_while_jobs_die(store, false).await;
}

case!(a_redrive_beside_a_letter_from_ahead_leaves_those_that_die_meanwhile: R34 R23
    => Restore);
/// So it does if one of them has died ahead of this store's clock.
async fn a_redrive_beside_a_letter_from_ahead_leaves_those_that_die_meanwhile(
    store: &Store,
) {
    redrive_while_jobs_die(store, true).await;
}

/// Redrives all dead jobs. Meanwhile a worker claims the moved jobs and buries them again. A
/// redrive that also took these would not end as long as the worker runs.
async fn redrive_while_jobs_die(store: &Store, has_letter_from_ahead: bool) {
    const COUNT: usize = 10 * PAGE;
    /// How often the worker claims at most, so that such a redrive ends and the case fails.
    const CLAIMS: usize = 1000;
    let operator = store.actor_in_steps("operator").await;
    let worker = store.actor_in_steps("worker").await;
    bury(&worker, COUNT).await;
    let mut dead_at_first = COUNT as u64;
    if has_letter_from_ahead {
        worker.restore_all(&[was_dead("ahead", now(store).plus(HELD))]).await;
        dead_at_first += 1;
    }
    // The jobs that die meanwhile have a later time of death.
    store.advance(PAST_BRIEF).await;
    let is_over = AtomicBool::new(false);

    let redriving = async {
        let redriven = operator.redrive(&Selection::All).await;
        is_over.store(true, Relaxed);
        redriven.expect("answered")
    };
    let burying = async {
        for _ in 0..CLAIMS {
            if is_over.load(Relaxed) {
                break;
            }
            let held = worker.claim(&worker.ask(STEP.get())).await.expect("answered");
            if !held.is_empty() {
                settle_all(&worker, &held, &dead("again")).await;
            }
        }
    };
    let (redriven, ()) = tokio::join!(redriving, burying);

    assert_eq!(redriven, Redriven { moved: dead_at_first, duplicates: 0 }, "R23");
}

case!(a_redrive_passes_stuck_jobs_at_every_joint: R16 R23 => Unique);
/// A redrive leaves a job dead if another job holds its unique key, and moves the
/// others. It is tested with such jobs beside each step boundary, and with a whole step
/// of them.
async fn a_redrive_passes_stuck_jobs_at_every_joint(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        redrive_beside_stuck(&actor, count, &beside_joints(count)).await;
        redrive_beside_stuck(&actor, count, &(0..PAGE.min(count)).collect::<Vec<_>>())
            .await;
    }
}

/// Buries `count` jobs and redrives them all. Meanwhile other jobs hold the unique keys
/// of those at the positions `stuck`.
async fn redrive_beside_stuck(actor: &Actor, count: usize, stuck: &[usize]) {
    let with_key = |at: usize, payload: Bytes| match stuck.contains(&at) {
        true => NewJob::new(payload).unique(key(&format!("key {at}"))),
        false => NewJob::new(payload),
    };
    let jobs = numbered(count).into_iter().enumerate();
    actor.store(jobs.map(|(at, payload)| with_key(at, payload))).await;
    for held in take_all(actor, count).await {
        actor.say(&held, dead("never")).await;
    }
    actor.store(stuck.iter().map(|at| with_key(*at, Bytes::from("holder")))).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    let (moved, duplicates) = ((count - stuck.len()) as u64, stuck.len() as u64);
    assert_eq!(redriven, Redriven { moved, duplicates });
    let mut wanted = without(&numbered(count), stuck);
    wanted.extend(stuck.iter().map(|_| Bytes::from("holder")));
    expect_exactly(payloads(&drain(actor).await), wanted);
    assert_eq!(actor.figures().await.dead, duplicates);
    actor.purge().await.expect("purged");
}

case!(selections_of_several_steps_are_exact: R23);
/// A redrive or purge of listed dead jobs affects exactly these jobs, although the list
/// also has unknown and repeated ids beside each step boundary.
async fn selections_of_several_steps_are_exact(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let positions = beside_joints(count);
        let others = without(&numbered(count), &positions);
        let chosen = positions.len() as u64;

        let jobs = bury(&actor, count).await;
        let redriven = actor.redrive(&selected(&jobs, &positions)).await;
        assert_eq!(
            redriven.expect("answered"),
            Redriven { moved: chosen, duplicates: 0 }
        );
        assert_eq!(drain(&actor).await.len(), positions.len());
        expect_exactly(listed(&actor.list(JobState::Dead, 1000).await), others.clone());
        actor.purge().await.expect("purged");

        let jobs = bury(&actor, count).await;
        let purged = actor.purge_dead(&selected(&jobs, &positions)).await;
        assert_eq!(purged.expect("answered"), chosen);
        expect_exactly(listed(&actor.list(JobState::Dead, 1000).await), others);
        let purged = actor.purge_dead(&Selection::All).await.expect("answered");
        assert_eq!(purged, (count - positions.len()) as u64);
        assert_eq!(actor.figures().await.dead, 0);
    }
}

/// Stores a held job and delayed ones, as far as the backend has these options. Their ids
/// come before those that relq makes. Returns how many jobs it stored.
async fn store_scheduled(actor: &Actor, count: usize) -> usize {
    let has = |what| actor.capabilities().supports(what);
    let mut stored = 0;
    if has(Capability::Followers) && has(Capability::ClientIds) {
        let leader = actor.store_one(NewJob::new("leader").id(id("leader"))).await;
        actor.store_one(NewJob::new("held").id(id("0")).after(leader)).await;
        stored += 2;
    }
    if has(Capability::Delay) && has(Capability::ClientIds) {
        let named = |at: usize| NewJob::new("delayed").id(id(&format!("0 {at}")));
        let delayed = (0..count).map(|at| named(at).delay(HELD));
        stored += actor.store(delayed).await.len();
    }
    stored
}

case!(a_purge_of_several_steps_leaves_nothing: R23);
/// A purge of several steps removes the jobs in every state, and its result counts them
/// all.
async fn a_purge_of_several_steps_leaves_nothing(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let is_delayable = actor.capabilities().supports(Capability::Delay);
    for count in COUNTS {
        let mut stored = 3 * count + store_scheduled(&actor, count).await;
        bury(&actor, count).await;
        actor.store(numbered(count)).await;
        let held = take_all(&actor, count).await;
        actor.store(numbered(count)).await;
        if is_delayable {
            let delayed = numbered(count).into_iter();
            actor.store(delayed.map(|one| NewJob::new(one).delay(BRIEF))).await;
            stored += count;
        }

        let purged = actor.purge().await.expect("purged");

        assert_eq!(purged, stored as u64, "R23: the purged jobs");
        let stats = actor.figures().await;
        assert_eq!(stats.unfinished() + stats.dead, 0);
        settle_all(&actor, &held, &Disposition::Done).await;
        store.advance(PAST_BRIEF).await;
        assert_eq!(drain(&actor).await, []);
    }
}

case!(a_cancel_finds_the_job_at_every_joint: R23);
/// A cancel finds the ready job that it names at each position beside a step boundary,
/// and does not cancel another one.
async fn a_cancel_finds_the_job_at_every_joint(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let jobs = actor.store(numbered(count)).await;
        let positions = beside_joints(count);
        for at in &positions {
            let cancelled = actor.cancel(&jobs[*at]).await.expect("answered");
            assert!(
                matches!(cancelled, Cancelled::Removed(JobState::Ready)),
                "job {at}: {cancelled:?}"
            );
        }
        let others = without(&numbered(count), &positions);
        assert_in_order(&actor, payloads(&drain(&actor).await), &others);
    }
}

case!(pages_of_every_size_show_each_job_once: R23);
/// The pages of a peek list each job of a state once, whatever their size. They list
/// ready jobs in the order of delivery.
async fn pages_of_every_size_show_each_job_once(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        bury(&actor, count).await;
        actor.store(numbered(count)).await;
        take_all(&actor, count).await;
        actor.store(numbered(count)).await;
        for limit in [1, PAGE - 1, PAGE, PAGE + 1, count] {
            let limit = u32::try_from(limit).expect("few");
            for state in [JobState::Dead, JobState::Leased, JobState::Ready] {
                let seen = listed(&actor.list(state, limit).await);
                match state {
                    JobState::Ready => assert_in_order(&actor, seen, &numbered(count)),
                    _ => expect_exactly(seen, numbered(count)),
                }
            }
        }
        actor.purge().await.expect("purged");
    }
}
