//! Unique keys of jobs that are rescheduled or redriven (R16).

use relq_core::{
    NewJob,
    operator::{JobState, Redriven, Selection, StateDetail},
    outcome::DuplicateOf,
    unique::OnDuplicate,
};

use crate::{
    cases::case,
    cases::unique::{bound, is_free, is_held},
    harness::{
        actor::Actor,
        checks::{dead, delivers, duplicate, key},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(reschedule_moves_a_scheduled_holder: R16 => Unique Delay);
/// A push with `Reschedule` gives the scheduled holder of its key a new due time, and
/// the holder keeps its payload.
async fn reschedule_moves_a_scheduled_holder(store: &Store) {
    let actor = store.actor("worker").await;
    let holder = actor.store_one(bound("first").delay(HELD)).await;
    let sooner = NewJob::new("second").unique_or(key("k"), OnDuplicate::Reschedule);

    let pushed = actor.offer(sooner.delay(BRIEF)).await;

    assert_eq!(pushed, duplicate(&holder, DuplicateOf::UniqueKey));
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    delivers(&actor, ["first"]).await;
}

case!(reschedule_can_put_a_holder_off: R16 R14 => Unique Delay);
/// A rescheduled holder is not delivered at its old, earlier due time. The holder may be
/// a job of the same call.
async fn reschedule_can_put_a_holder_off(store: &Store) {
    let actor = store.actor("worker").await;
    let later = NewJob::new("second").unique_or(key("k"), OnDuplicate::Reschedule);
    let call = [bound("first").delay(BRIEF * 5), later.delay(HELD)];
    actor.push(&call, None).await.expect("the push is taken");
    store.advance(BRIEF * 6).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    assert_eq!(actor.figures().await.scheduled, 1);
}

case!(reschedule_to_now_makes_ready: R16 => Unique Delay);
/// A push with `Reschedule` and without a delay makes the scheduled holder of its key
/// due at once.
async fn reschedule_to_now_makes_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").delay(HELD)).await;

    actor.offer(bound("x").unique_or(key("k"), OnDuplicate::Reschedule)).await;
    actor.recover_all().await;

    assert_eq!(actor.take_one().await.payload, "first");
}

case!(reschedule_leaves_a_ready_holder: R16 => Unique Delay);
/// A push with `Reschedule` does not change a ready holder of its key.
async fn reschedule_leaves_a_ready_holder(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let later = NewJob::new("second").unique_or(key("k"), OnDuplicate::Reschedule);

    actor.offer(later.delay(HELD)).await;

    assert_eq!(actor.take_one().await.payload, "first");
}

case!(reschedule_leaves_a_leased_holder: R16 => Unique Delay);
/// A push with `Reschedule` does not change a leased holder of its key.
async fn reschedule_leaves_a_leased_holder(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    let later = NewJob::new("second").unique_or(key("k"), OnDuplicate::Reschedule);

    actor.offer(later.delay(HELD)).await;

    actor.finish(&held).await;
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(keep_leaves_a_scheduled_holder: R16 => Unique Delay);
/// A push with `Keep` does not change the due time of the scheduled holder of its key.
async fn keep_leaves_a_scheduled_holder(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").delay(HELD)).await;
    let before = due(&actor).await;

    is_held(&actor).await;

    assert_eq!(due(&actor).await, before);
}

async fn due(actor: &Actor) -> StateDetail {
    actor.list(JobState::Scheduled, 10).await.remove(0).detail
}

case!(a_redriven_job_holds_its_key: R16 => Unique);
/// A redriven job holds its unique key again.
async fn a_redriven_job_holds_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(redriven, Redriven { moved: 1, duplicates: 0 });
    is_held(&actor).await;
}

case!(a_redrive_answers_duplicates: R16 => Unique);
/// A redrive leaves a job dead if another job holds its unique key, and counts it as a
/// duplicate.
async fn a_redrive_answers_duplicates(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    is_free(&actor).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(redriven, Redriven { moved: 0, duplicates: 1 });
    assert_eq!(actor.the_dead_one().await.payload, "first");
    delivers(&actor, ["second"]).await;
}

case!(a_redrive_of_two_moves_one: R16 => Unique);
/// Two dead jobs have the same unique key. A redrive of both moves only one.
async fn a_redrive_of_two_moves_one(store: &Store) {
    let actor = store.actor("worker").await;
    for payload in ["first", "second"] {
        actor.store_one(bound(payload)).await;
        let held = actor.take_one().await;
        actor.say(&held, dead("no")).await;
    }

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(redriven, Redriven { moved: 1, duplicates: 1 });
    assert_eq!(actor.figures().await.unfinished(), 1);
}

case!(purging_a_dead_job_leaves_its_successor: R16 => Unique);
/// A purge of a dead job does not free its unique key, which another job holds.
async fn purging_a_dead_job_leaves_its_successor(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    is_free(&actor).await;

    actor.purge_dead(&Selection::All).await.expect("answered");

    is_held(&actor).await;
}
