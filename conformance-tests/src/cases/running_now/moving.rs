//! A scheduled job becomes ready, as if it were due (R32).

use std::time::Duration;

use relq_core::{
    NewJob,
    operator::{JobState, RunNow},
};

use crate::{
    cases::{
        case,
        times::{TOLERANCE, assert_oldest},
    },
    harness::{
        checks::{expect_exactly, numbered, payloads, postpone, retry_after},
        store::Store,
        times::HELD,
        waiter::Waiter,
    },
};

case!(a_delayed_job_is_run_now: R32 R14 => Inspect Delay);
/// A delayed job is ready at once, and is delivered once.
async fn a_delayed_job_is_run_now(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    actor.store_one(NewJob::new("other").delay(HELD)).await;

    assert_eq!(actor.run_now(&job).await, RunNow::Ready, "R32");

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.scheduled), (1, 1), "R32: one job moved");
    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["job"], "R32");
    actor.finish(&held[0]).await;
    store.advance(HELD * 2).await;
    actor.recover_all().await;
    assert_eq!(payloads(&actor.take(10).await), ["other"], "R32: it ran once");
}

case!(a_retried_job_keeps_attempt_and_error: R32 R11 => Inspect);
/// A retried job that is run now keeps its attempt and its error.
async fn a_retried_job_keeps_attempt_and_error(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one("job").await;
    actor.say(&actor.take_one().await, retry_after(HELD)).await;

    assert_eq!(actor.run_now(&job).await, RunNow::Ready, "R32");

    let ready = actor.list(JobState::Ready, 10).await.remove(0);
    let found = (ready.attempt, ready.last_error.as_deref());
    assert_eq!(found, (1, Some("it failed")), "R32: the attempt and the error");
    assert_eq!(actor.take_one().await.attempt(), 2, "R32");
}

case!(a_postponed_job_is_run_now: R32 R26 => Inspect);
/// A postponed job is ready at once, and no attempt is counted.
async fn a_postponed_job_is_run_now(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one("job").await;
    actor.say(&actor.take_one().await, postpone(HELD)).await;

    assert_eq!(actor.run_now(&job).await, RunNow::Ready, "R32");

    assert_eq!(actor.take_one().await.attempt(), 1, "R32");
}

case!(it_goes_to_the_back: R32 R13 => Inspect Delay Fifo);
/// A job that is run now stands behind the ready jobs, and before those that come later.
async fn it_goes_to_the_back(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    actor.store(["first", "second"]).await;

    actor.run_now(&job).await;

    actor.store_one("last").await;
    let served = payloads(&actor.take(10).await);
    assert_eq!(served, ["first", "second", "job", "last"], "R32: at the back");
}

case!(a_due_job_is_run_now: R32 R14 => Inspect Delay);
/// A job that is due, and that nothing has made ready, is ready or is made so.
async fn a_due_job_is_run_now(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(Duration::from_secs(5))).await;
    store.advance(Duration::from_secs(6)).await;

    let answer = actor.run_now(&job).await;

    assert!(matches!(answer, RunNow::Ready | RunNow::NotScheduled), "R32: {answer:?}");
    actor.recover_all().await;
    assert_eq!(payloads(&actor.take(10).await), ["job"], "R32: it runs once");
}

case!(the_age_begins: R32 R27 => Inspect Delay ReadyAge);
/// The age of a job that is run now counts from the call.
async fn the_age_begins(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    store.advance(HELD / 2).await;

    actor.run_now(&job).await;

    assert_oldest(&actor.figures().await, Duration::ZERO);
    store.advance(HELD / 4).await;
    assert_oldest(&actor.figures().await, HELD / 4);
}

case!(it_wakes_a_waiting_claim: R32 R21 => Inspect Delay BlockingWait, real_time);
/// A claim that waits gets the job at once.
async fn it_wakes_a_waiting_claim(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    let job = operator.store_one(NewJob::new("job").delay(HELD)).await;
    let waiter = Waiter::start(store, &worker, 1).await;

    operator.run_now(&job).await;

    assert_eq!(payloads(&waiter.woken(store).await), ["job"], "R32");
}

case!(a_paused_queue_runs_it_after_the_resume: R32 R23 => Inspect Delay);
/// On a paused queue the job becomes ready, and is claimed after the resume.
async fn a_paused_queue_runs_it_after_the_resume(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    actor.pause().await.expect("answered");

    assert_eq!(actor.run_now(&job).await, RunNow::Ready, "R32");

    assert_eq!(actor.take(1).await, [], "R23: paused");
    assert_eq!(actor.figures().await.ready, 1, "R32");
    actor.resume().await.expect("answered");
    assert_eq!(payloads(&actor.take(1).await), ["job"], "R32");
}

case!(the_next_due_time_moves_on: R32 R23 => Inspect Delay);
/// The next due time is then that of the next scheduled job, or none.
async fn the_next_due_time_moves_on(store: &Store) {
    let actor = store.actor("worker").await;
    let soon = actor.store_one(NewJob::new("soon").delay(HELD)).await;
    let late = actor.store_one(NewJob::new("late").delay(HELD * 3)).await;

    actor.run_now(&soon).await;

    let next = actor.figures().await.next_due_in.expect("one job is scheduled");
    assert!(next + TOLERANCE >= HELD * 3, "R32: {next:?} until the next is due");
    actor.run_now(&late).await;
    assert_eq!(actor.figures().await.next_due_in, None, "R32");
}

case!(it_races_with_a_promotion: R32 R12 => Inspect Delay);
/// Jobs that are run now while others promote and claim them are delivered once.
async fn it_races_with_a_promotion(store: &Store) {
    let (operator, worker) = (store.actor("o").await, store.actor("w").await);
    let delay = Duration::from_secs(5);
    let jobs = numbered(50).into_iter().map(|one| NewJob::new(one).delay(delay));
    let jobs = operator.store(jobs).await;
    store.advance(delay + Duration::from_secs(1)).await;
    let running = tokio::spawn(async move {
        for job in jobs.iter().rev() {
            operator.run_now(job).await;
        }
    });

    let mut taken = Vec::new();
    while taken.len() < 50 {
        worker.recover_all().await;
        taken.extend(worker.take(7).await);
        tokio::task::yield_now().await;
    }

    running.await.expect("the calls end");
    worker.recover_all().await;
    taken.extend(worker.take(10).await);
    expect_exactly(payloads(&taken), numbered(50));
}
