//! A job knows when it was pushed (R27).

use std::time::Duration;

use relq_core::{
    Disposition, NewJob, Priority,
    batch::{BatchId, NewBatch},
    environment::Timestamp,
    operator::{JobState, Selection},
};

use super::{TOLERANCE, assert_pushed_at, now};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, numbered, postpone, retry_after, retry_now, settle_all},
        clock::Skew,
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

const HOURS: Duration = Duration::from_secs(7 * 3600);

/// Longer than a client relies on its estimate of the store's clock.
const PAST_ESTIMATE: Duration = Duration::from_secs(11);

/// More pushes than any queue of the suite has parts. Each part has an estimate of its own.
const PUSHES: usize = 8;

/// The times of push in all views of the jobs in a state.
async fn times_of(actor: &Actor, state: JobState) -> Vec<Option<Timestamp>> {
    let jobs = actor.list(state, 10).await;
    jobs.iter().map(|job| job.enqueued_at).collect()
}

case!(times_are_those_of_the_store: R27, real_time);
/// Without the proxy, the server's own clock says when a job was pushed, and a ready job is
/// not older than its push.
async fn times_are_those_of_the_store(store: &Store) {
    let actor = store.actor("worker").await;
    let pushed = now(store);
    actor.store_one("job").await;
    store.advance(PAST_BRIEF).await;

    if let Some(age) = actor.figures().await.oldest_ready_age {
        assert!(age <= TOLERANCE, "R27: {age:?}");
    }
    assert_pushed_at("a delivered job", actor.take_one().await.enqueued_at, pushed);
}

case!(a_delivery_has_the_time_of_the_push: R27);
/// A delivery says when its job was pushed, however long the job has waited.
async fn a_delivery_has_the_time_of_the_push(store: &Store) {
    let actor = store.actor("worker").await;
    let first = now(store);
    actor.store_one("first").await;
    store.advance(10 * TOLERANCE).await;
    let second = now(store);
    actor.store_one("second").await;
    store.advance(10 * TOLERANCE).await;

    for held in actor.take(2).await {
        let at = if held.payload == "first" { first } else { second };
        assert_pushed_at("a delivered job", held.enqueued_at, at);
    }
}

case!(the_time_of_the_push_never_changes: R27);
/// The time of the push is the same in every state, after a retry, a recovery, a
/// postponement and a redrive.
async fn the_time_of_the_push_never_changes(store: &Store) {
    let actor = store.actor("worker").await;
    let pushed = now(store);
    actor.store_one("job").await;
    let time = times_of(&actor, JobState::Ready).await[0];
    assert_pushed_at("a ready job", time, pushed);

    for settlement in [retry_after(BRIEF), retry_now(), postpone(BRIEF)] {
        store.advance(10 * TOLERANCE).await;
        actor.recover_all().await;
        let held = actor.take_one().await;
        assert_eq!(held.enqueued_at, time, "R27: of a delivery before {settlement:?}");
        assert_eq!(times_of(&actor, JobState::Leased).await, [time]);
        actor.say(&held, settlement).await;
    }
    store.advance(10 * TOLERANCE).await;
    actor.recover_all().await;
    let held = actor.take_one_briefly().await;
    assert_eq!(held.enqueued_at, time, "R27: after a postponement");
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let held = actor.take_one().await;
    assert_eq!(held.enqueued_at, time, "R27: after a recovery");
    actor.say(&held, dead("no")).await;
    assert_eq!(times_of(&actor, JobState::Dead).await, [time]);
    actor.redrive(&Selection::All).await.expect("answered");
    assert_eq!(actor.take_one().await.enqueued_at, time, "R27: after a redrive");
}

case!(a_scheduled_job_has_the_time_of_its_push: R27 => Delay);
/// A delayed job says when it was pushed, not when it was due.
async fn a_scheduled_job_has_the_time_of_its_push(store: &Store) {
    let actor = store.actor("worker").await;
    let pushed = now(store);
    actor.store_one(NewJob::new("job").delay(HELD)).await;
    let time = times_of(&actor, JobState::Scheduled).await[0];
    assert_pushed_at("a scheduled job", time, pushed);

    store.advance(HELD + PAST_BRIEF).await;
    actor.recover_all().await;

    assert_eq!(actor.take_one().await.enqueued_at, time);
}

case!(jobs_with_every_option_have_a_time: R27 R2);
/// A job with every option arrives unchanged and with its time.
async fn jobs_with_every_option_have_a_time(store: &Store) {
    let actor = store.actor("worker").await;
    let class = actor.class();
    let pushed = now(store);
    let full = |payload: Vec<u8>| {
        let job = NewJob::new(payload).header("name", "value").expires_in(HELD);
        class.fit(job.priority(Priority::HIGHEST).lease(HELD))
    };
    // An empty payload, one that is as long as a time, and a longer one.
    let payloads = [vec![], vec![0; 6], vec![255; 300]];
    actor.store(payloads.iter().cloned().map(full)).await;

    let mut found = Vec::new();
    for held in actor.take(3).await {
        assert_pushed_at("a job with options", held.enqueued_at, pushed);
        assert_eq!(held.headers.iter().collect::<Vec<_>>(), [("name", "value")]);
        found.push(held.payload.to_vec());
    }
    found.sort_by_key(Vec::len);
    assert_eq!(found, payloads, "R2");
}

case!(a_wrong_clock_records_the_right_time: R18 R27 @ redis);
/// A producer whose clock is wrong by hours records the time of the store's clock.
async fn a_wrong_clock_records_the_right_time(store: &Store) {
    let worker = store.actor("worker").await;
    for (name, skew) in [("fast", Skew::Ahead(HOURS)), ("slow", Skew::Behind(HOURS))] {
        let producer = store.actor_with_clock(name, skew).await;
        store.advance(10 * TOLERANCE).await;
        let pushed = now(store);
        producer.store_one(name).await;

        let held = worker.take_one().await;

        assert_pushed_at(
            &format!("the job of a {name} producer"),
            held.enqueued_at,
            pushed,
        );
    }
}

case!(a_clock_that_is_set_back_is_soon_followed: R18 R27 @ redis);
/// A producer that stays connected records the right times again soon after the store's
/// clock was set back. It estimates the time of a plain push, and must not rely for ever on
/// what the clock showed when it connected.
async fn a_clock_that_is_set_back_is_soon_followed(store: &Store) {
    let actor = store.actor("producer").await;
    store.set_clock_back(HOURS);
    store.advance(PAST_ESTIMATE).await;
    for job in numbered(PUSHES) {
        actor.store_one(job).await;
    }
    let early = actor.take(100).await;
    settle_all(&actor, &early, &Disposition::Done).await;

    let pushed = now(store);
    for job in numbered(PUSHES) {
        actor.store_one(job).await;
    }

    let held = actor.take(100).await;
    assert_eq!(held.len(), PUSHES, "R1");
    for held in held {
        assert_pushed_at("a job after the correction", held.enqueued_at, pushed);
    }
}

case!(the_store_says_when_a_job_with_options_was_pushed: R18 R27 => ClientIds @ redis);
/// The store itself records when a job with options was pushed. So the first push after its
/// clock was set back has the right time, also if the producer stays connected.
async fn the_store_says_when_a_job_with_options_was_pushed(store: &Store) {
    let actor = store.actor("producer").await;
    let class = actor.class();
    store.set_clock_back(HOURS);
    let pushed = now(store);
    let named = |name: &'static str| NewJob::new(name).id(id(name));
    for job in [
        named("plain"),
        named("urgent").priority(Priority::HIGHEST),
        named("expiring").expires_in(HELD),
        named("delayed").delay(BRIEF),
        named("kept").keep_result(HELD),
    ] {
        actor.store_one(class.fit(job)).await;
    }
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;

    let held = actor.take(5).await;

    assert_eq!(held.len(), 5, "R1");
    for held in held {
        let what = format!("the job {:?}", held.job());
        assert_pushed_at(&what, held.enqueued_at, pushed);
    }
}

case!(the_store_says_when_a_piece_was_added: R18 R27 => Batches @ redis);
/// The store itself records when a piece was added. So the first one after its clock was set
/// back has the right time.
async fn the_store_says_when_a_piece_was_added(store: &Store) {
    let actor = store.actor("producer").await;
    store.set_clock_back(HOURS);
    let added = now(store);
    let batch = BatchId::new("batch").expect("cases use valid batch ids");
    actor.make(&NewBatch::new(batch.clone())).await;
    actor.fill(&batch, ["piece"]).await;

    let held = actor.take_one().await;

    assert_pushed_at("a piece", held.enqueued_at, added);
}

case!(a_plain_push_has_no_time: R20 R27 @ redis);
/// A job that another client pushed has no time of push, before and after its delivery.
async fn a_plain_push_has_no_time(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"plain").await;

    assert_eq!(times_of(&actor, JobState::Ready).await, [None]);
    assert_eq!(actor.figures().await.oldest_ready_age, None);
    let held = actor.take_one().await;
    assert_eq!(held.enqueued_at, None);
    actor.say(&held, retry_after(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let again = actor.take_one().await;
    assert_eq!((&again.payload[..], again.enqueued_at), (&b"plain"[..], None));
}
