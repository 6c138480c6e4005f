//! A cancelled job is removed, whatever its state, and does not come back (R23).

use std::time::Duration;

use relq_core::{
    Delivery, Disposition, JobId, NewJob,
    operator::{Cancelled, JobState},
    outcome::{Extended, Settled},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, expect_exactly, id, key, numbered, retry_after,
        },
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

async fn cancel(actor: &Actor, job: &JobId) -> Cancelled {
    actor.cancel(job).await.expect("the cancel is answered")
}

case!(a_scheduled_job_is_cancelled: R23 => Delay);
/// A scheduled job can be cancelled.
async fn a_scheduled_job_is_cancelled(store: &Store) {
    let actor = store.actor("o").await;
    let job = actor.store_one(NewJob::new("job").delay(BRIEF)).await;

    assert_eq!(cancel(&actor, &job).await, Cancelled::Removed(JobState::Scheduled));

    store.advance(PAST_BRIEF).await;
    assert_eq!(actor.recover_all().await.promoted, 0);
    assert_eq!(actor.take(1).await, []);
    assert_eq!(actor.figures().await.cancelled, 1);
}

case!(a_ready_job_is_cancelled: R23);
/// An operator can cancel one of many ready jobs, whatever its priority.
async fn a_ready_job_is_cancelled(store: &Store) {
    let actor = store.actor("o").await;
    let mut jobs = actor.store(numbered(10)).await;
    let urgent = NewJob::new("urgent").priority(actor.class().most_urgent());
    jobs.push(actor.store_one(urgent).await);

    for index in [4, 10] {
        let cancelled = cancel(&actor, &jobs[index]).await;
        assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    }

    let mut left = numbered(10);
    left.remove(4);
    delivers(&actor, left).await;
    assert_eq!(actor.figures().await.cancelled, 2);
}

case!(a_cancel_takes_no_twin: R23);
/// If several jobs have equal payloads, a cancel removes only the job with the given
/// id.
async fn a_cancel_takes_no_twin(store: &Store) {
    let actor = store.actor("o").await;
    let jobs = actor.store(["same", "same", "same"]).await;

    cancel(&actor, &jobs[1]).await;

    let left = drain(&actor).await;
    expect_exactly(left.iter().map(Delivery::job), [&jobs[0], &jobs[2]]);
}

case!(a_leased_job_is_cancelled: R23);
/// A leased job can be cancelled; its worker learns this at its next heartbeat.
async fn a_leased_job_is_cancelled(store: &Store) {
    let (operator, worker) = (store.actor("o").await, store.actor("w").await);
    let job = worker.store_one("job").await;
    let held = worker.take_one().await;

    assert_eq!(cancel(&operator, &job).await, Cancelled::Removed(JobState::Leased));

    let heard = worker.keep(&held, HELD).await;
    assert_eq!(heard.expect("answered"), Extended::Cancelled);
    let stats = worker.figures().await;
    assert_eq!((stats.leased, stats.cancelled, stats.unfinished()), (0, 1, 0));
}

case!(a_cancel_is_told_until_the_lease_ends: R23 => JobLease);
/// A worker whose next heartbeat comes late, but before its lease would have ended, still
/// learns that its job was cancelled.
async fn a_cancel_is_told_until_the_lease_ends(store: &Store) {
    let (operator, worker) = (store.actor("o").await, store.actor("w").await);
    let job = worker.store_one("job").await;
    let held = worker.take_one().await;
    assert_eq!(cancel(&operator, &job).await, Cancelled::Removed(JobState::Leased));

    store.advance(HELD / 2).await;
    operator.recover_all().await;

    let heard = worker.keep(&held, HELD).await;
    assert_eq!(heard.expect("answered"), Extended::Cancelled);
}

case!(a_job_is_cancelled_by_an_id_of_glob_characters: R23 => ClientIds);
/// A cancel finds a ready or leased job whose id has the characters of a pattern, and takes
/// no job that the pattern matches.
async fn a_job_is_cancelled_by_an_id_of_glob_characters(store: &Store) {
    let actor = store.actor("o").await;
    let names = ["a*c", "abc", "a[b]c", "a?c", "a\\c", "*"];
    actor.store(names.map(|name| NewJob::new(name).id(id(name)))).await;

    for (name, leased) in [("a[b]c", false), ("*", false), ("a*c", true), ("a?c", true)]
    {
        let state = if leased { JobState::Leased } else { JobState::Ready };
        if leased && actor.figures().await.leased == 0 {
            actor.take(4).await;
        }
        assert_eq!(
            cancel(&actor, &id(name)).await,
            Cancelled::Removed(state),
            "{name}"
        );
    }

    let left = actor.list(JobState::Leased, 10).await;
    expect_exactly(left.iter().map(|one| &one.payload[..]), [&b"a\\c"[..], b"abc"]);
}

case!(a_cancelled_job_cannot_be_settled: R23 R7);
/// Settling a cancelled job changes nothing.
async fn a_cancelled_job_cannot_be_settled(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(3)).await;
    for disposition in [Disposition::Done, retry_after(Duration::ZERO), dead("no")] {
        let held = actor.take_one().await;
        cancel(&actor, held.job()).await;
        assert_eq!(actor.say(&held, disposition).await, Settled::LeaseLost);
    }

    actor.recover_all().await;

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0));
    assert_eq!((stats.finished, stats.cancelled), (0, 3));
}

case!(a_cancelled_job_does_not_come_back: R23 R9);
/// A cancelled job does not come back when its lease would have expired, nor
/// when its worker is released.
async fn a_cancelled_job_does_not_come_back(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(2)).await;
    let held = actor.take_briefly(2).await;
    for one in &held {
        cancel(&actor, one.job()).await;
    }

    assert_eq!(actor.release_worker(actor.worker()).await.expect("answered").jobs, 0);
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued, 0);
    assert_eq!(actor.take(10).await, []);
}

case!(a_cancel_of_nothing_finds_nothing: R23);
/// A cancel does not find or count a job that is finished, dead or unknown.
async fn a_cancel_of_nothing_finds_nothing(store: &Store) {
    let actor = store.actor("o").await;
    actor.store(numbered(2)).await;
    let held = actor.take(2).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;

    for job in [held[0].job(), held[1].job(), &id("unknown"), &id("0"), &id("*")] {
        assert_eq!(cancel(&actor, job).await, Cancelled::NotFound);
    }

    assert_eq!(actor.figures().await.cancelled, 0);
    assert_eq!(actor.figures().await.dead, 1);
}

case!(a_second_cancel_finds_nothing: R23);
/// A second cancel finds nothing.
async fn a_second_cancel_finds_nothing(store: &Store) {
    let actor = store.actor("o").await;
    let job = actor.store_one("job").await;
    cancel(&actor, &job).await;

    assert_eq!(cancel(&actor, &job).await, Cancelled::NotFound);

    assert_eq!(actor.figures().await.cancelled, 1);
}

case!(a_cancel_finds_retried_jobs: R23 => Unique);
/// A cancel also finds a job that was delivered and then retried.
async fn a_cancel_finds_retried_jobs(store: &Store) {
    let actor = store.actor("o").await;
    let job = actor.store_one(NewJob::new("job").unique(key("k"))).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    assert_eq!(cancel(&actor, &job).await, Cancelled::Removed(JobState::Scheduled));

    assert_eq!(actor.figures().await.unfinished(), 0);
}
