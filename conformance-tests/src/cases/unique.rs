//! A unique key holds at most one job (R16).

use std::num::NonZeroU16;

use relq_core::{
    Disposition, NewJob,
    operator::JobState,
    outcome::{DuplicateOf, Extended, Pushed},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, duplicate, expect_exactly, id, key, payloads,
            retry_after, retry_now,
        },
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

pub(crate) fn bound(payload: &'static str) -> NewJob {
    NewJob::new(payload).unique(key("k"))
}

pub(crate) async fn is_held(actor: &Actor) {
    let refused = actor.offer(bound("second")).await;
    assert!(
        matches!(refused, Pushed::Duplicate { by: DuplicateOf::UniqueKey, .. }),
        "R16: the push with a held key was answered {refused:?}"
    );
}

pub(crate) async fn is_free(actor: &Actor) {
    actor.store_one(bound("second")).await;
}

case!(a_held_key_answers_its_holder: R16 => Unique);
/// A push whose key is held is a duplicate, and returns the id of the job that holds
/// the key.
async fn a_held_key_answers_its_holder(store: &Store) {
    let actor = store.actor("producer").await;
    let holder = actor.store_one(bound("first")).await;

    let second = actor.offer(bound("second")).await;

    assert_eq!(second, duplicate(&holder, DuplicateOf::UniqueKey));
    delivers(&actor, ["first"]).await;
}

case!(keys_that_begin_alike_are_two: R16 => Unique);
/// Two unique keys are different if one begins with the other, or if only their case
/// differs.
async fn keys_that_begin_alike_are_two(store: &Store) {
    let actor = store.actor("producer").await;

    for name in ["k", "k:", "K", "k*", "{k}"] {
        actor.store_one(NewJob::new(name).unique(key(name))).await;
    }

    assert_eq!(actor.figures().await.ready, 5);
}

case!(the_first_of_a_key_in_a_call_wins: R16 => Unique);
/// If one push contains several jobs with the same unique key, the first is stored. The
/// others are duplicates, and their results contain the id of the first.
async fn the_first_of_a_key_in_a_call_wins(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs = [NewJob::new("plain"), bound("first"), bound("second"), bound("third")];

    let pushed = actor.push(&jobs, None).await.expect("taken");

    let second = duplicate(pushed[1].job(), DuplicateOf::UniqueKey);
    assert_eq!(pushed[2..], [second.clone(), second]);
    delivers(&actor, ["plain", "first"]).await;
}

case!(a_scheduled_job_holds_its_key: R16 => Unique Delay);
/// A scheduled job holds its unique key.
async fn a_scheduled_job_holds_its_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(bound("first").delay(HELD)).await;

    is_held(&actor).await;
}

case!(a_leased_job_holds_its_key: R16 => Unique);
/// A leased job holds its unique key.
async fn a_leased_job_holds_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let _held = actor.take_one().await;

    is_held(&actor).await;
}

case!(a_retry_keeps_the_key: R16 => Unique);
/// A job that waits for its retry still holds its unique key, and this key does not
/// prevent the retry.
async fn a_retry_keeps_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    is_held(&actor).await;

    assert_eq!(actor.figures().await.scheduled, 1);
}

case!(a_retried_job_frees_its_key_in_the_end: R16 => Unique);
/// A job that is retried at once keeps its key during its second delivery, and the
/// ack of that delivery frees it.
async fn a_retried_job_frees_its_key_in_the_end(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_now()).await;
    actor.recover_all().await;
    let again = actor.take_one().await;
    is_held(&actor).await;

    actor.finish(&again).await;

    is_free(&actor).await;
}

case!(a_lost_lease_keeps_the_key: R16 => Unique);
/// A job keeps its key when its lease expires and it comes back.
async fn a_lost_lease_keeps_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    is_held(&actor).await;

    actor.recover_all().await;

    is_held(&actor).await;
    delivers(&actor, ["first"]).await;
}

case!(a_give_back_keeps_the_key: R16 => Unique);
/// A job keeps its key when it is given back.
async fn a_give_back_keeps_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, Disposition::GiveBack).await;

    is_held(&actor).await;

    delivers(&actor, ["first"]).await;
}

case!(a_release_keeps_the_key: R16 => Unique);
/// A job keeps its key when its worker is released.
async fn a_release_keeps_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("the release is answered");

    is_held(&actor).await;
}

case!(an_ack_frees_the_key: R16 => Unique);
/// An ack of the holder frees its unique key.
async fn an_ack_frees_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    drain(&actor).await;

    is_free(&actor).await;
}

case!(a_discard_frees_the_key: R16 => Unique);
/// A discard of the holder frees its unique key.
async fn a_discard_frees_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, Disposition::Discard).await;

    is_free(&actor).await;
}

case!(a_burial_frees_the_key: R16 => Unique);
/// The burial of the holder frees its unique key.
async fn a_burial_frees_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    is_free(&actor).await;
}

case!(the_last_retry_frees_the_key: R16 R11 => Unique);
/// A failure on the last attempt buries the holder and frees its unique key.
async fn the_last_retry_frees_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").max_attempts(NonZeroU16::MIN)).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_now()).await;

    is_free(&actor).await;
}

case!(the_last_lost_lease_frees_the_key: R16 R11 => Unique);
/// A lease that expires on the last attempt buries the holder and frees its unique key.
async fn the_last_lost_lease_frees_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").max_attempts(NonZeroU16::MIN)).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    is_free(&actor).await;
}

case!(cancelling_a_scheduled_job_frees_its_key: R16 => Unique Delay);
/// Cancelling a scheduled job frees its key.
async fn cancelling_a_scheduled_job_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    let first = actor.store_one(bound("first").delay(HELD)).await;
    actor.cancel(&first).await.expect("the cancel is answered");

    is_free(&actor).await;
}

case!(cancelling_a_ready_job_frees_its_key: R16 => Unique);
/// Cancelling a ready job frees its key, at any priority.
async fn cancelling_a_ready_job_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    for level in actor.class().levels() {
        let first = actor.store_one(bound("first").priority(level)).await;
        actor.cancel(&first).await.expect("the cancel is answered");

        is_free(&actor).await;
        assert_eq!(payloads(&drain(&actor).await), ["second"], "{level}");
    }
}

case!(cancelling_a_leased_job_frees_its_key: R16 => Unique);
/// A cancel of a leased job frees its unique key. If another job then takes the key,
/// the worker's late settlement does not free it.
async fn cancelling_a_leased_job_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    let first = actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.cancel(&first).await.expect("the cancel is answered");
    is_free(&actor).await;

    let heard = actor.keep(&held, HELD).await;
    actor.say(&held, Disposition::Done).await;

    assert_eq!(heard.expect("answered"), Extended::Cancelled);
    is_held(&actor).await;
}

case!(a_purge_frees_the_key: R16 => Unique);
/// A purge of the queue frees the unique keys of its jobs.
async fn a_purge_frees_the_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(bound("first")).await;
    actor.purge().await.expect("the purge is answered");

    is_free(&actor).await;
}

case!(a_stale_ack_frees_no_key: R16 R7 => Unique);
/// A settlement with a stale receipt does not free the job's unique key.
async fn a_stale_ack_frees_no_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    actor.say(&stale, Disposition::Done).await;

    is_held(&actor).await;
}

case!(a_known_id_comes_before_the_key: R16 R4 => ClientIds Unique);
/// If a push has a known id and a unique key, it is reported as a duplicate by id,
/// whether or not another job holds the key.
async fn a_known_id_comes_before_the_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(bound("first").id(id("a"))).await;

    let again = actor.offer(bound("again").id(id("a"))).await;

    assert_eq!(again, duplicate(&id("a"), DuplicateOf::Id));
}

case!(a_duplicate_by_id_takes_no_key: R16 R4 => ClientIds Unique);
/// A push that is a duplicate by id does not take the key that it names.
async fn a_duplicate_by_id_takes_no_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(NewJob::new("first").id(id("a"))).await;
    actor.offer(bound("again").id(id("a"))).await;

    is_free(&actor).await;
}

case!(a_duplicate_by_key_uses_no_id_up: R16 R4 => ClientIds Unique);
/// A push that is a duplicate by key does not use up its id: a later push with
/// the same id is stored.
async fn a_duplicate_by_key_uses_no_id_up(store: &Store) {
    let actor = store.actor("producer").await;
    let holder = actor.store_one(bound("first")).await;
    let second = actor.offer(bound("second").id(id("b"))).await;
    assert_eq!(second, duplicate(&holder, DuplicateOf::UniqueKey));
    drain(&actor).await;

    actor.store_one(bound("third").id(id("b"))).await;

    delivers(&actor, ["third"]).await;
}

case!(racing_pushes_of_a_key_store_one: R16 R12 => Unique);
/// Many pushes with one unique key run at the same time, and only one is stored.
async fn racing_pushes_of_a_key_store_one(store: &Store) {
    let mut pushes = Vec::new();
    for index in 0..16 {
        let actor = store.actor(&format!("p{index}")).await;
        pushes.push(tokio::spawn(async move { actor.offer(bound("job")).await }));
    }

    let mut answers = Vec::new();
    for push in pushes {
        answers.push(push.await.expect("the push ends"));
    }

    let stored = answers.iter().filter(|one| matches!(one, Pushed::Stored(_))).count();
    assert_eq!(stored, 1, "{answers:?}");
    assert!(answers.iter().all(|one| one.job() == answers[0].job()), "{answers:?}");
}

case!(a_delayed_unique_job_runs_once: R16 R14 => Unique Delay);
/// A delayed job holds its unique key from its push on. The key becomes free when the
/// job has run.
async fn a_delayed_unique_job_runs_once(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").delay(BRIEF)).await;
    is_held(&actor).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    is_held(&actor).await;

    delivers(&actor, ["first"]).await;

    is_free(&actor).await;
}

case!(a_view_shows_the_key: R16 => Unique);
/// A peek shows the key of a unique job, and none for a job without a key.
async fn a_view_shows_the_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([bound("first"), NewJob::new("plain")]).await;

    let ready = actor.list(JobState::Ready, 10).await;

    let shown = ready.into_iter().map(|one| (one.payload, one.unique));
    expect_exactly(shown, [("first".into(), Some(key("k"))), ("plain".into(), None)]);
}
