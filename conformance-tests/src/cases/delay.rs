//! The store's clock decides when a delayed or retried job is delivered (R14).

use std::time::Duration;

use bytes::Bytes;
use relq_core::{NewJob, operator::JobState, unique::OnDuplicate};

use crate::{
    cases::case,
    harness::{
        checks::{
            assert_in_line, dead, delivers, drain, expect_exactly, id, key, listed,
            numbered, payloads, retry_after, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
    spec::line::Line,
};

/// By how much a measured delay may be too short. The push and the claim each cut a
/// time to whole milliseconds.
const ROUNDING: Duration = Duration::from_millis(2);

case!(a_delayed_job_is_not_early: R14 => Delay);
/// No claim gets a delayed job before its time.
async fn a_delayed_job_is_not_early(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("later").delay(HELD)).await;

    actor.recover_all().await;

    assert_eq!(actor.take(10).await, []);
    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.ready), (1, 0));
}

case!(no_other_job_becomes_ready_with_a_due_one: R14 R11 => Delay);
/// A job falls due beside a dead one, one whose lease has expired, and one that is delayed
/// for longer. None of these becomes ready with it.
async fn no_other_job_becomes_ready_with_a_due_one(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("dead").await;
    actor.say(&actor.take_one().await, dead("no")).await;
    actor.store_one("leased").await;
    actor.take_one_briefly().await;
    let later = [("due", BRIEF), ("delayed", HELD)];
    actor.store(later.map(|(name, delay)| NewJob::new(name).delay(delay))).await;
    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;

    actor.store_one("ready").await;
    let mut served = payloads(&actor.take(9).await);
    actor.recover_all().await;
    served.extend(payloads(&actor.take(9).await));

    expect_exactly(served, ["due", "leased", "ready"].map(Bytes::from));
    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.dead), (1, 1), "R14 R11: the other jobs");
}

case!(a_delayed_job_is_on_time: R14 => Delay, real_time);
/// A waiting worker gets a delayed job when it is due, and not before.
async fn a_delayed_job_is_on_time(store: &Store) {
    let actor = store.actor("worker").await;
    let (delay, lateness) = (Duration::from_millis(700), actor.capabilities().lateness);
    let pushed = store.elapsed();
    actor.store_one(NewJob::new("later").delay(delay)).await;

    let taken = actor.take_within(1, Duration::from_secs(60)).await;

    let took = store.elapsed() - pushed;
    assert_eq!(payloads(&taken), ["later"]);
    assert!(took + ROUNDING >= delay, "early: after {took:?}");
    assert!(took <= delay + lateness + store.response_limit(), "late: after {took:?}");
}

case!(recovery_promotes_due_jobs: R14 => Delay);
/// Recovery makes due jobs ready, and its result says how many.
async fn recovery_promotes_due_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = numbered(20).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
    actor.store(jobs).await;
    actor.store_one(NewJob::new("later").delay(HELD)).await;
    store.advance(PAST_BRIEF).await;

    assert_eq!(actor.recover_all().await.promoted, 20);

    expect_exactly(payloads(&drain(&actor).await), numbered(20));
    assert_eq!(actor.figures().await.scheduled, 1);
}

case!(thousands_fall_due_at_once: R14 => Delay);
/// All due jobs become ready, even if there are more than one step of the backend can
/// handle.
async fn thousands_fall_due_at_once(store: &Store) {
    let actor = store.actor("worker").await;
    let many = 8_500;
    for batch in numbered(many).chunks(500) {
        actor
            .store(batch.iter().map(|one| NewJob::new(one.clone()).delay(BRIEF)))
            .await;
    }
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    delivers(&actor, numbered(many)).await;
}

case!(a_delayed_job_blocks_nobody: R14 => Delay);
/// A delayed job does not delay the jobs that were pushed after it.
async fn a_delayed_job_blocks_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([NewJob::new("later").delay(HELD), NewJob::new("now")]).await;

    delivers(&actor, ["now"]).await;
}

case!(due_jobs_come_in_order_of_time: R14 => Delay Fifo);
/// Jobs fall due in the order of their due times, independent of the order of
/// pushes.
async fn due_jobs_come_in_order_of_time(store: &Store) {
    let actor = store.actor("worker").await;
    let due_after = |payload: &'static str, ms| {
        NewJob::new(payload).delay(Duration::from_millis(ms))
    };
    actor
        .store([
            due_after("third", 60),
            due_after("first", 20),
            due_after("second", 40),
        ])
        .await;
    store.advance(BRIEF).await;

    actor.recover_all().await;

    assert_eq!(payloads(&drain(&actor).await), ["first", "second", "third"]);
}

case!(jobs_due_together_come_in_order: R13 R14 => Delay Order);
/// Jobs of one push that fall due at the same time become ready in the order of the
/// push. There are so many of them that an order by number as text would be wrong.
async fn jobs_due_together_come_in_order(store: &Store) {
    let actor = store.actor("worker").await;
    let many = actor.limits().max_jobs_per_call.get() as usize;
    let delayed = numbered(many).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
    actor.store(delayed).await;
    let scheduled = listed(&actor.list(JobState::Scheduled, 300).await);
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    assert_eq!(scheduled, numbered(many));
    let line = Line::default().and_then(numbered(many));
    assert_in_line(&actor, &drain(&actor).await, &line);
}

case!(calls_due_together_come_in_order: R13 R14 => Delay Order);
/// Jobs of several calls that fall due together become ready in the order of
/// the calls.
async fn calls_due_together_come_in_order(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    for batch in numbered(40).chunks(3) {
        actor
            .store(batch.iter().map(|one| NewJob::new(one.clone()).delay(BRIEF)))
            .await;
    }
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    let line = Line::default().and_then(numbered(40));
    assert_in_line(&actor, &drain(&actor).await, &line);
}

case!(thousands_due_together_come_in_order: R13 R14 => Delay Order ClientIds);
/// Two thousand jobs of several calls fall due in the same millisecond. They become ready in
/// the order of the calls, and not in the order of their ids. The Redis backends keep the
/// order of 2,048, because the proxy's clock shows a year after 2039.
async fn thousands_due_together_come_in_order(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    let many = 2_000;
    let delayed = |(index, payload): (usize, Bytes)| {
        NewJob::new(payload).id(id(&format!("{:04}", many - index))).delay(BRIEF)
    };
    let jobs: Vec<_> = numbered(many).into_iter().enumerate().map(delayed).collect();
    for call in jobs.chunks(500) {
        actor.store(call.to_vec()).await;
    }
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    let line = Line::default().and_then(numbered(many));
    assert_in_line(&actor, &drain(&actor).await, &line);
}

case!(a_rescheduled_job_comes_after_its_equals: R13 R14 R16 => Delay Unique Order);
/// A push replaces the delay of a unique job. If other jobs are due at the same time,
/// the job becomes ready after them.
async fn a_rescheduled_job_comes_after_its_equals(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    let unique = key("k");
    actor.store_one(NewJob::new("moved").unique(unique.clone()).delay(HELD)).await;
    let delayed = numbered(20).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
    actor.store(delayed).await;

    let again = NewJob::new("again").unique_or(unique, OnDuplicate::Reschedule);
    actor.offer(again.delay(BRIEF)).await;

    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let line =
        Line::default().and_then(numbered(20).into_iter().chain(["moved".into()]));
    assert_in_line(&actor, &drain(&actor).await, &line);
}

case!(jobs_retried_together_come_in_order: R13 R14 => Order);
/// Jobs that failed together are retried in the order in which the failures
/// were reported. A job that is retried at once comes after one that is due.
async fn jobs_retried_together_come_in_order(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    actor.store(numbered(30)).await;
    let mut held = actor.take(30).await;
    held.reverse();
    settle_all(&actor, &held, &retry_after(BRIEF)).await;
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    let line = Line::default().and_then(payloads(&held));
    assert_in_line(&actor, &drain(&actor).await, &line);

    actor.store_one("retried at once").await;
    let held = actor.take_one().await;
    actor.store_one("retried").await;
    actor.say(&actor.take_one().await, retry_after(BRIEF)).await;
    store.advance(PAST_BRIEF).await;

    actor.say(&held, retry_after(Duration::ZERO)).await;

    let line = Line::of(["retried"]).and_then(["retried at once"]);
    assert_in_line(&actor, &drain(&actor).await, &line);
}

case!(a_retry_waits_its_time: R14);
/// A retried job does not come early.
async fn a_retry_waits_its_time(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let waiting = actor.list(JobState::Scheduled, 10).await;
    assert_eq!(waiting[0].last_error.as_deref(), Some("it failed"));
    assert_eq!(waiting[0].attempt, 1);
}

case!(a_retry_comes_in_time: R14);
/// A retried job is delivered when its delay has passed.
async fn a_retry_comes_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;

    let again = actor.take_one().await;

    assert_eq!((again.attempt(), again.job()), (2, held.job()));
}

case!(a_retry_at_once_is_ready: R14);
/// A retry without delay can be claimed at once, without a recovery.
async fn a_retry_at_once_is_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(Duration::ZERO)).await;

    let again = actor.take_within(1, Duration::from_secs(5)).await;

    assert_eq!(payloads(&again), ["job"]);
}

case!(a_delayed_job_keeps_its_level: R14 R15 => Delay Priority);
/// A delayed job keeps its priority.
async fn a_delayed_job_keeps_its_level(store: &Store) {
    let actor = store.actor("worker").await;
    let level = actor.class().most_urgent();
    let urgent = NewJob::new("urgent").priority(level).delay(BRIEF);
    actor.store([urgent.clone(), NewJob::new("normal")]).await;
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    let served = drain(&actor).await;
    assert_in_line(&actor, &served, &Line::of(["normal"]).and_then([urgent]));
    assert!(served.iter().any(|one| one.payload == "urgent" && one.priority == level));
}

case!(the_longest_delay_is_far_off: R14 => Delay);
/// The longest delay is allowed and does not overflow.
async fn the_longest_delay_is_far_off(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").delay(relq_core::limits::MAX_DURATION)).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let next = actor.figures().await.next_due_in.expect("one is scheduled");
    assert!(next > relq_core::limits::MAX_DURATION - HELD, "{next:?}");
}

case!(stats_say_what_is_due_next: R14 R23 => Delay);
/// The stats of a queue show when its next delayed job is due.
async fn stats_say_what_is_due_next(store: &Store) {
    let actor = store.actor("worker").await;
    assert_eq!(actor.figures().await.next_due_in, None);
    actor.store([NewJob::new("b").delay(HELD * 2), NewJob::new("a").delay(HELD)]).await;

    let next = actor.figures().await.next_due_in.expect("two are scheduled");

    assert!(next <= HELD && next > HELD / 2, "{next:?}");
}
