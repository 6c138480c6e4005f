//! Tests of the calls that an operator makes, such as pause, cancel and peek (R6, R23).

use std::time::Duration;

use relq_core::{
    Delivery, Disposition, JobId, NewJob,
    capabilities::Order,
    operator::{Cancelled, JobState, PeekRequest, StateDetail},
    outcome::{Extended, Settled},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, expect_exactly, id, key, listed, numbered, payloads,
            retry_after, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

async fn cancel(actor: &Actor, job: &JobId) -> Cancelled {
    actor.cancel(job).await.expect("the cancel is answered")
}

case!(a_paused_queue_gives_nothing: R23);
/// A claim on a paused queue gets no job, and its result says that it is paused.
async fn a_paused_queue_gives_nothing(store: &Store) {
    let (operator, worker) = (store.actor("o").await, store.actor("w").await);
    worker.store_one("job").await;
    operator.pause().await.expect("answered");

    assert_eq!(worker.take(10).await, []);

    let stats = worker.figures().await;
    assert_eq!((stats.paused, stats.ready), (true, 1));
}

case!(settle_and_claim_respects_the_pause: R23);
/// On a paused queue, `settle_and_claim` carries out its settlement and claims no job.
async fn settle_and_claim_respects_the_pause(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(2)).await;
    let held = actor.take_one().await;
    actor.pause().await.expect("answered");
    let done = [relq_core::Settlement::new(held.receipt, Disposition::Done)];

    let both = actor.settle_and_claim(&done, &actor.ask(1)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::Applied]);
    assert_eq!(both.claimed.expect("answered"), []);
}

case!(a_resumed_queue_goes_on: R23);
/// After a resume, claims get jobs again.
async fn a_resumed_queue_goes_on(store: &Store) {
    let actor = store.actor("w").await;
    actor.store(numbered(3)).await;
    actor.pause().await.expect("answered");
    actor.resume().await.expect("answered");

    delivers(&actor, numbered(3)).await;

    assert!(!actor.figures().await.paused);
}

case!(pausing_twice_is_pausing_once: R23);
/// Pausing a paused queue and resuming a running one change nothing.
async fn pausing_twice_is_pausing_once(store: &Store) {
    let actor = store.actor("w").await;
    actor.resume().await.expect("answered");
    actor.pause().await.expect("answered");
    actor.pause().await.expect("answered");
    actor.resume().await.expect("answered");

    actor.store_one("job").await;

    assert_eq!(drain(&actor).await.len(), 1);
}

case!(a_paused_queue_works_otherwise: R23);
/// On a paused queue every call except a claim works as usual.
async fn a_paused_queue_works_otherwise(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store(numbered(4)).await;
    let held = actor.take(3).await;
    dying.take_briefly(1).await;
    actor.pause().await.expect("answered");

    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;
    let heard = actor.keep(&held[2], HELD).await;
    actor.store_one("more").await;
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 1);

    assert!(matches!(heard, Ok(Extended::Until(_))), "{heard:?}");
    let stats = actor.figures().await;
    assert_eq!((stats.finished, stats.dead, stats.leased, stats.ready), (1, 1, 1, 2));
}

case!(jobs_fall_due_in_a_pause: R23 R14 => Delay);
/// Jobs that fall due during a pause are delivered after it.
async fn jobs_fall_due_in_a_pause(store: &Store) {
    let actor = store.actor("w").await;
    actor.pause().await.expect("answered");
    actor.store_one(NewJob::new("job").delay(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, []);

    actor.resume().await.expect("answered");

    delivers(&actor, ["job"]).await;
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

case!(a_peek_shows_each_state: R23 => Delay);
/// A peek at a state shows the jobs in that state and no others.
async fn a_peek_shows_each_state(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("dead").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    actor.store_one("leased").await;
    actor.take_one().await;
    actor.store([NewJob::new("ready"), NewJob::new("scheduled").delay(HELD)]).await;

    for state in
        [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead]
    {
        let seen = actor.list(state, 10).await;
        assert_eq!(listed(&seen), [state.as_str()]);
        assert_eq!(seen[0].detail.state(), state);
    }
}

case!(a_peek_shows_the_holder: R23);
/// A peek shows which worker holds a job, since when and until when.
async fn a_peek_shows_the_holder(store: &Store) {
    let actor = store.actor("host:42:x").await;
    actor.store_one("job").await;
    actor.take_one().await;

    let seen = actor.list(JobState::Leased, 10).await.remove(0);

    let StateDetail::Leased { worker, since, until } = seen.detail else {
        panic!("not leased: {:?}", seen.detail)
    };
    assert_eq!(&worker, actor.worker());
    let runs = until.since(since);
    assert!(runs <= HELD + BRIEF && runs + BRIEF >= HELD, "{runs:?}");
    assert_eq!(seen.attempt, 1);
}

case!(a_peek_shows_the_whole_job: R23 => ClientIds Unique Delay Expiry Priority);
/// A peek shows all options that were set for a job.
async fn a_peek_shows_the_whole_job(store: &Store) {
    let actor = store.actor("operator").await;
    let most = std::num::NonZeroU16::new(7).expect("not zero");
    let priority = actor.class().most_urgent();
    let job = NewJob::new(b"\0\xff".to_vec())
        .id(id("mine"))
        .delay(HELD)
        .expires_in(HELD * 2)
        .priority(priority)
        .unique(key("k"))
        .max_attempts(most)
        .header("trace", "1");
    actor.store_one(job.clone()).await;

    let seen = actor.list(JobState::Scheduled, 10).await.remove(0);

    assert_eq!((seen.id, seen.unique), (Some(id("mine")), Some(key("k"))));
    assert_eq!((seen.payload, seen.headers), (job.payload, job.headers));
    assert_eq!((seen.priority, seen.max_attempts), (priority, most));
    assert_eq!((seen.attempt, seen.last_error), (0, None));
    let StateDetail::Scheduled { due } = seen.detail else {
        panic!("not scheduled: {:?}", seen.detail)
    };
    let left = seen.expires_at.expect("it expires").since(due);
    assert!(left <= HELD + BRIEF && left + BRIEF >= HELD, "{left:?}");
}

case!(a_peek_shows_the_soonest_first: R23 => Delay);
/// A peek lists scheduled jobs in the order in which they fall due. A queue of several
/// parts has an order within each part, and one call stores its jobs in one part.
async fn a_peek_shows_the_soonest_first(store: &Store) {
    let actor = store.actor("operator").await;
    let delayed = |minutes: u64| {
        let delay = Duration::from_secs(minutes * 60);
        NewJob::new(minutes.to_string()).delay(delay)
    };
    let jobs = [30, 10, 20].map(delayed);
    if actor.capabilities().order == Order::ByPart {
        actor.store(jobs).await;
    } else {
        for job in jobs {
            actor.store_one(job).await;
        }
    }

    let seen = listed(&actor.list(JobState::Scheduled, 2).await);

    assert_eq!(seen, ["10", "20", "30"]);
}

case!(pages_show_every_ready_job: R23);
/// The pages of a peek show every ready job once, whatever their size.
async fn pages_show_every_ready_job(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(53)).await;

    for limit in [1, 2, 7, 52, 53, 54, 1000] {
        expect_exactly(listed(&actor.list(JobState::Ready, limit).await), numbered(53));
    }
}

case!(pages_show_every_other_job: R23 => Delay);
/// The pages of a peek show every scheduled, leased and dead job once, whatever
/// their size.
async fn pages_show_every_other_job(store: &Store) {
    let actor = store.actor("operator").await;
    let later = numbered(23).into_iter().map(|one| NewJob::new(one).delay(HELD));
    actor.store(numbered(46)).await;
    let buried = actor.take(23).await;
    settle_all(&actor, &buried, &dead("no")).await;
    let held = actor.take(23).await;
    actor.store(later).await;

    for limit in [1, 5, 23, 100] {
        let dead = listed(&actor.list(JobState::Dead, limit).await);
        let leased = listed(&actor.list(JobState::Leased, limit).await);
        let scheduled = listed(&actor.list(JobState::Scheduled, limit).await);
        expect_exactly(dead, payloads(&buried));
        expect_exactly(leased, payloads(&held));
        expect_exactly(scheduled, numbered(23));
    }
}

case!(pages_split_no_moment: R23 => Delay);
/// If many jobs fall due in the same millisecond, the pages list each of them once.
async fn pages_split_no_moment(store: &Store) {
    let actor = store.actor("operator").await;
    let jobs = numbered(200).into_iter().map(|one| NewJob::new(one).delay(HELD));
    actor.store(jobs).await;

    let seen = listed(&actor.list(JobState::Scheduled, 3).await);

    expect_exactly(seen, numbered(200));
}

case!(pages_show_thousands: R23);
/// A peek lists each job once, even if there are more than the backend reads in one
/// step.
async fn pages_show_thousands(store: &Store) {
    let actor = store.actor("operator").await;
    let many = 8_500;
    for batch in numbered(many).chunks(500) {
        actor.store(batch.to_vec()).await;
    }

    let seen = listed(&actor.list(JobState::Ready, 10_000).await);

    expect_exactly(seen, numbered(many));
}

case!(a_peek_at_nothing_is_empty: R23);
/// A peek at a state without jobs returns one empty page.
async fn a_peek_at_nothing_is_empty(store: &Store) {
    let actor = store.actor("operator").await;

    let ask = PeekRequest::new(JobState::Dead, std::num::NonZeroU32::MIN);

    let page = actor.peek(&ask).await.expect("answered");

    assert_eq!((page.jobs, page.next), (vec![], None));
}

case!(looking_changes_nothing: R23);
/// Calls that only read, such as stats and peek, change nothing in the queue.
async fn looking_changes_nothing(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(5)).await;
    let held = actor.take_one().await;
    // The jobs become older while the calls run.
    let ageless = || async {
        let mut stats = actor.figures().await;
        stats.oldest_ready_age = None;
        stats
    };
    let before = ageless().await;

    actor.list(JobState::Ready, 2).await;
    actor.list(JobState::Leased, 2).await;
    actor.audit().await.expect("answered");

    assert_eq!(ageless().await, before);
    actor.finish(&held).await;
    let rest = payloads(&drain(&actor).await).into_iter();
    expect_exactly(rest.chain([held.payload]), numbered(5));
}
