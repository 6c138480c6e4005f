//! A job is restored in the state that it had (R34).

use std::time::Duration;

use relq_core::{
    operator::{JobState, JobView, Redriven, Selection},
    outcome::Pushed,
};

use super::fixture::{was_dead, was_ready, was_scheduled, with_all, yesterday};
use crate::{
    cases::{
        case,
        times::{assert_oldest, now},
    },
    harness::{
        checks::{delivers, id, payloads, reason},
        restorer::but,
        store::Store,
        times::{HELD, LIFE, PAST_LIFE},
        waiter::Waiter,
    },
};

/// When the job is due that a claim waits for in real time.
const SOON: Duration = Duration::from_secs(1);

case!(a_ready_job_is_restored: R34 => Restore);
/// A ready job is listed as it was, and delivered.
async fn a_ready_job_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let job = was_ready("job");

    actor.restore_all(std::slice::from_ref(&job)).await;

    actor.lists(JobState::Ready, &[job]).await;
    assert_eq!(actor.figures().await.ready, 1, "R23");
    delivers(&actor, ["job"]).await;
}

case!(a_scheduled_job_is_restored: R34 R14 => Restore Delay);
/// A scheduled job is due when it would have been due.
async fn a_scheduled_job_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let job = was_scheduled("job", now(store).plus(LIFE));

    actor.restore_all(std::slice::from_ref(&job)).await;

    actor.lists(JobState::Scheduled, &[job]).await;
    assert_eq!(actor.take(1).await, [], "R14: it is not due yet");
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;
    delivers(&actor, ["job"]).await;
}

case!(an_overdue_job_is_restored: R34 R14 => Restore Delay);
/// A scheduled job whose due time has passed is due.
async fn an_overdue_job_is_restored(store: &Store) {
    let actor = store.actor("worker").await;

    actor.restore_all(&[was_scheduled("job", yesterday(store))]).await;

    actor.recover_all().await;
    delivers(&actor, ["job"]).await;
}

case!(a_dead_letter_is_restored: R34 R11 => Restore);
/// A dead job is dead since the same time and for the same reason, with its attempts and
/// its last error, and is not delivered.
async fn a_dead_letter_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let job = was_dead("job", yesterday(store));

    actor.restore_all(std::slice::from_ref(&job)).await;

    actor.lists(JobState::Dead, std::slice::from_ref(&job)).await;
    let found = actor.the_dead_one().await;
    assert_eq!(reason(&found), "job was too hard", "R34");
    assert_eq!((found.attempt, found.last_error), (2, job.last_error), "R34");
    assert_eq!(actor.take(1).await, [], "R11: it is dead");
}

case!(every_field_is_restored: R34 R2 R27
    => Restore Delay Priority Unique Expiry Results Inspect);
/// A look-up shows each job as it was restored, with all of its fields. A ready job is
/// listed so, because a look-up need not find it.
async fn every_field_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let due = now(store).plus(HELD);
    let urgent = |job: JobView| {
        but(with_all(job, store), |it| it.priority = actor.class().most_urgent())
    };
    let jobs = [
        urgent(was_ready("ready")),
        urgent(was_scheduled("scheduled", due)),
        urgent(was_dead("dead", yesterday(store))),
        with_all(was_dead("another", yesterday(store)), store),
    ];

    actor.restore_all(&jobs).await;

    actor.lists(JobState::Ready, &jobs[..1]).await;
    for job in &jobs[1..] {
        let name = job.id.as_ref().expect("it has one");
        assert_eq!(actor.record(name).await.job, *job, "R34");
    }
}

case!(a_waiting_claim_gets_a_restored_job: R34 R21 => Restore BlockingWait, real_time);
/// A claim that waits is woken by a ready job that is restored.
async fn a_waiting_claim_gets_a_restored_job(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    let waiter = Waiter::start(store, &worker, 1).await;

    operator.restore_all(&[was_ready("job")]).await;

    assert_eq!(payloads(&waiter.woken(store).await), ["job"], "R34");
}

case!(a_waiting_claim_gets_a_restored_job_when_it_is_due: R34 R14
    => Restore Delay BlockingWait);
/// A claim that waits gets a scheduled job that is restored meanwhile, when it is due.
async fn a_waiting_claim_gets_a_restored_job_when_it_is_due(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    let waiter = Waiter::start(store, &worker, 1).await;

    operator.restore_all(&[was_scheduled("job", now(store).plus(SOON))]).await;

    let limit = SOON + waiter.lateness + store.response_limit();
    let (taken, _) = store.within(limit, waiter.claim).await;
    assert_eq!(payloads(&taken.expect("the claim ends")), ["job"], "R34");
}

case!(a_restored_job_waits_from_now_on: R34 R27 => Restore ReadyAge);
/// The age of a ready job begins when it is restored, whenever it was pushed.
async fn a_restored_job_waits_from_now_on(store: &Store) {
    let actor = store.actor("worker").await;
    let job = but(was_ready("job"), |it| it.enqueued_at = Some(yesterday(store)));

    actor.restore_all(&[job]).await;
    assert_oldest(&actor.figures().await, Duration::ZERO);

    store.advance(HELD / 2).await;
    assert_oldest(&actor.figures().await, HELD / 2);
}

case!(a_paused_queue_keeps_what_is_restored: R34 R23 => Restore);
/// A paused queue stores restored jobs, and delivers them after the resume.
async fn a_paused_queue_keeps_what_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    actor.pause().await.expect("paused");

    actor.restore_all(&[was_ready("job")]).await;

    assert_eq!(actor.take(1).await, [], "R34: the queue is paused");
    actor.resume().await.expect("resumed");
    delivers(&actor, ["job"]).await;
}

case!(no_jobs_are_restored_by_an_empty_call: R34 => Restore);
/// A call without jobs stores nothing.
async fn no_jobs_are_restored_by_an_empty_call(store: &Store) {
    let actor = store.actor("worker").await;

    assert_eq!(actor.restore(&[]).await, [], "R34");

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0), "R34");
}

case!(jobs_of_all_states_are_restored_at_once: R34 R5 => Restore Delay);
/// One call restores jobs of all states, and each can be handled on its own.
async fn jobs_of_all_states_are_restored_at_once(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [
        was_dead("dead", yesterday(store)),
        was_ready("ready"),
        was_scheduled("scheduled", now(store).plus(HELD)),
    ];
    let wanted: Vec<_> =
        ["dead", "ready", "scheduled"].map(|name| Pushed::Stored(id(name))).into();

    assert_eq!(actor.restore(&jobs).await, wanted, "R34");

    let stats = actor.figures().await;
    assert_eq!((stats.dead, stats.ready, stats.scheduled), (1, 1, 1), "R23");
    let redriven = actor.redrive(&Selection::All).await.expect("answered");
    assert_eq!(redriven, Redriven { moved: 1, duplicates: 0 }, "R34");
    delivers(&actor, ["ready", "dead"]).await;
}
