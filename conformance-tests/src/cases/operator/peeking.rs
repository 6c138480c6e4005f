//! A peek shows the jobs of a state, page by page, and changes nothing (R23).

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use relq_core::{
    NewJob,
    capabilities::Order,
    operator::{JobState, PeekRequest, StateDetail},
};

use crate::{
    cases::case,
    harness::{
        checks::{
            dead, drain, expect_exactly, id, key, listed, numbered, payloads,
            settle_all,
        },
        store::Store,
        times::{BRIEF, HELD},
    },
};

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

case!(the_time_of_the_claim_stays: R23 R10);
/// A heartbeat moves the end of a lease and not its beginning.
async fn the_time_of_the_claim_stays(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let begins = async || match actor.list(JobState::Leased, 10).await.remove(0).detail
    {
        StateDetail::Leased { since, .. } => since,
        other => panic!("not leased: {other:?}"),
    };
    let since = begins().await;

    store.advance(BRIEF).await;
    actor.keep(&held, 2 * HELD).await.expect("answered");

    assert_eq!(begins().await, since, "R23: the time of the claim");
}

case!(a_peek_shows_the_whole_job: R23 => ClientIds Unique Delay Expiry Priority);
/// A peek shows all options that were set for a job.
async fn a_peek_shows_the_whole_job(store: &Store) {
    let actor = store.actor("operator").await;
    let most = NonZeroU16::new(7).expect("not zero");
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

case!(a_peek_tells_many_leased_jobs_from_ready_ones: R23);
/// A thousand jobs of a queue are leased, more than one read of the backend covers. They
/// are listed as leased, and only the other jobs as ready.
async fn a_peek_tells_many_leased_jobs_from_ready_ones(store: &Store) {
    let actor = store.actor("worker").await;
    let many = 1_300;
    for call in numbered(many).chunks(500) {
        actor.store(call.to_vec()).await;
    }
    let mut held = actor.take(500).await;
    held.extend(actor.take(500).await);
    assert_eq!(held.len(), 1_000, "R1: the jobs that are claimed");

    let leased = listed(&actor.list(JobState::Leased, 1_000).await);
    let ready = listed(&actor.list(JobState::Ready, 1_000).await);

    expect_exactly(leased, payloads(&held));
    expect_exactly(ready.into_iter().chain(payloads(&held)), numbered(many));
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

    let ask = PeekRequest::new(JobState::Dead, NonZeroU32::MIN);

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
