//! Jobs that expire, and the unique keys that they held (R16, R17).

use relq_core::{Disposition, NewJob, operator::Selection, outcome::Pushed};

use crate::{
    cases::case,
    cases::unique::{bound, is_free, is_held},
    harness::{
        actor::Actor,
        checks::{dead, delivers, drain, key, payloads, retry_now},
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
    proxy::Fault,
};

/// Lets a ready job with a unique key expire, and pushes a second job that takes the
/// key. Returns the actor and the id of the expired job.
async fn succeeded(store: &Store) -> (Actor, relq_core::JobId) {
    let actor = store.actor("worker").await;
    let first = actor.store_one(bound("first").expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    is_free(&actor).await;
    (actor, first)
}

case!(an_expired_holder_frees_its_key: R16 R17 => Unique Expiry);
/// After a ready job has expired, a new push can take its unique key. The other jobs of its
/// call hold theirs, each for its own time.
async fn an_expired_holder_frees_its_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(bound("first").expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;

    is_free(&actor).await;

    delivers(&actor, ["second"]).await;
    let holder = |name: &'static str| NewJob::new(name).unique(key(name));
    let early = |name| holder(name).expires_in(BRIEF);
    let late = holder("late").expires_in(HELD);
    actor.store([early("early"), holder("never"), late, early("early too")]).await;
    store.advance(PAST_BRIEF).await;
    for (name, is_held) in
        [("early", false), ("never", true), ("late", true), ("early too", false)]
    {
        let again = actor.offer(holder(name)).await;
        let is_duplicate = matches!(again, Pushed::Duplicate { .. });
        assert_eq!(
            is_duplicate, is_held,
            "R16: the key of {name:?} is held: {again:?}"
        );
    }
}

case!(an_expired_scheduled_holder_frees_its_key: R16 R17 => Unique Delay Expiry);
/// After a scheduled job has expired, a new push can take its unique key.
async fn an_expired_scheduled_holder_frees_its_key(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(bound("first").delay(HELD).expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;

    is_free(&actor).await;

    delivers(&actor, ["second"]).await;
}

case!(burying_an_expired_job_leaves_its_successor: R16 R17 => Unique Expiry);
/// A job has expired, and a newer job holds its unique key. The burial of the expired
/// job does not free that key.
async fn burying_an_expired_job_leaves_its_successor(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    is_free(&actor).await;

    actor.recover_all().await;
    let held = actor.take_one().await;

    assert_eq!(held.payload, "second");
    is_held(&actor).await;
}

/// How many commands of a claim the next case lets fail: more than any backend sends.
const COMMANDS: [&str; 8] = ["1", "2", "3", "4", "5", "6", "7", "8"];

case!(an_interrupted_claim_leaves_the_key_of_an_expired_job_free: R16 R17 => Unique Expiry @ redis);
/// A claim finds an expired job, and fails at one of its commands, perhaps before the job is
/// buried. Meanwhile a new push can take its unique key.
async fn an_interrupted_claim_leaves_the_key_of_an_expired_job_free(store: &Store) {
    let producer = store.actor("producer").await;
    for (command, name) in (1..).zip(COMMANDS) {
        let claimer = store.actor(name).await;
        producer.store_one(bound("first").expires_in(BRIEF)).await;
        store.advance(PAST_BRIEF).await;
        store.inject(name, command, Fault::Error("ERR the suite says so".to_owned()));

        // It returns nothing if the backend sends fewer commands.
        _ = claimer.queue().claim(&claimer.ask(1)).await;

        store.heal().await;
        is_free(&producer).await;
        delivers(&producer, ["second"]).await;
        producer.purge().await.expect("answered");
    }
}

case!(a_leased_holder_does_not_expire: R16 R17 => Unique Expiry);
/// A leased job keeps its unique key after its expiry has passed.
async fn a_leased_holder_does_not_expire(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    is_held(&actor).await;

    actor.finish(&held).await;

    is_free(&actor).await;
}

case!(a_holder_leased_again_does_not_expire: R16 R17 => Unique Expiry);
/// A job that was given back, released or retried keeps its unique key during its next
/// delivery, after its expiry has passed.
async fn a_holder_leased_again_does_not_expire(store: &Store) {
    let actor = store.actor("worker").await;
    for end in [Some(Disposition::GiveBack), Some(retry_now()), None] {
        actor.store_one(bound("first").expires_in(LIFE)).await;
        let held = actor.take_one().await;
        match end {
            Some(end) => drop(actor.say(&held, end).await),
            None => drop(actor.release_worker(actor.worker()).await.expect("answered")),
        }
        let held = actor.take_one().await;
        store.advance(PAST_LIFE).await;
        is_held(&actor).await;

        actor.finish(&held).await;

        is_free(&actor).await;
        delivers(&actor, ["second"]).await;
    }
}

case!(promoting_an_expired_job_leaves_its_successor: R16 R17 => Unique Delay Expiry);
/// A scheduled job has expired, and a newer job holds its unique key. When the expired
/// job falls due, the newer job keeps the key.
async fn promoting_an_expired_job_leaves_its_successor(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").delay(BRIEF).expires_in(BRIEF / 2)).await;
    store.advance(PAST_BRIEF).await;
    is_free(&actor).await;

    actor.recover_all().await;
    let held = actor.take_one().await;

    assert_eq!(held.payload, "second");
    is_held(&actor).await;
}

case!(cancelling_an_expired_job_leaves_its_successor: R16 R17 => Unique Expiry);
/// A job has expired, and a newer job holds its unique key. A cancel of the expired job
/// does not free that key.
async fn cancelling_an_expired_job_leaves_its_successor(store: &Store) {
    let (actor, first) = succeeded(store).await;

    actor.cancel(&first).await.expect("answered");

    is_held(&actor).await;
    delivers(&actor, ["second"]).await;
}

case!(an_expired_retry_frees_its_key: R16 R17 => Unique Expiry);
/// If a job fails after its expiry, a new push can take its unique key.
async fn an_expired_retry_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;

    actor.say(&held, retry_now()).await;

    is_free(&actor).await;
    delivers(&actor, ["second"]).await;
}

case!(an_expired_give_back_frees_its_key: R16 R17 => Unique Expiry);
/// If a job is given back after its expiry, a new push can take its unique key. The
/// burial of the expired job then does not free the key of the newer job.
async fn an_expired_give_back_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    actor.say(&held, Disposition::GiveBack).await;
    is_free(&actor).await;

    let held = actor.take_one().await;

    assert_eq!(held.payload, "second");
    is_held(&actor).await;
}

case!(an_expired_release_frees_its_key: R16 R17 R24 => Unique Expiry);
/// When a worker is released, an expired job that it held frees its unique key at once.
async fn an_expired_release_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    actor.take_one().await;
    store.advance(PAST_LIFE).await;

    actor.release_worker(actor.worker()).await.expect("answered");

    is_free(&actor).await;
    delivers(&actor, ["second"]).await;
}

case!(an_expired_lost_lease_frees_its_key: R16 R17 => Unique Expiry);
/// A job is expired when its lease ends. A recovery finds it, and its unique key is
/// then free.
async fn an_expired_lost_lease_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    actor.take_one_briefly().await;
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;

    is_free(&actor).await;

    delivers(&actor, ["second"]).await;
    is_free(&actor).await;
}

case!(an_expired_redriven_job_frees_its_key: R16 R17 => Unique Expiry);
/// A dead job is redriven and then expires. Its unique key is free after that.
async fn an_expired_redriven_job_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    actor.redrive(&Selection::All).await.expect("answered");
    is_held(&actor).await;
    store.advance(PAST_LIFE).await;

    is_free(&actor).await;

    delivers(&actor, ["second"]).await;
}

/// Buries a job with a unique key, lets `holder` take the key and expire, and redrives the
/// job.
async fn assert_redriven_beside(store: &Store, holder: NewJob) {
    let actor = store.actor("worker").await;
    let first = actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    actor.store_one(holder.expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;

    let only = Selection::Only(vec![first]);
    let redriven = actor.redrive(&only).await.expect("answered");

    assert_eq!((redriven.moved, redriven.duplicates), (1, 0), "R16: the key is free");
    is_held(&actor).await;
    delivers(&actor, ["first"]).await;
}

case!(a_redrive_takes_the_key_of_an_expired_job: R16 R17 => Unique Expiry);
/// A dead job is redriven although a ready job has its unique key, if that one has expired.
async fn a_redrive_takes_the_key_of_an_expired_job(store: &Store) {
    assert_redriven_beside(store, bound("holder")).await;
}

case!(a_redrive_takes_the_key_of_an_expired_delayed_job: R16 R17 => Unique Delay Expiry);
/// The same holds if a scheduled job has the key.
async fn a_redrive_takes_the_key_of_an_expired_delayed_job(store: &Store) {
    assert_redriven_beside(store, bound("holder").delay(HELD)).await;
}

case!(a_job_redriven_after_its_expiry_keeps_its_key: R16 R17 => Unique Expiry);
/// A dead job expires and is redriven after that. A push takes its unique key only if the
/// job is never delivered.
async fn a_job_redriven_after_its_expiry_keeps_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    store.advance(PAST_LIFE).await;
    actor.redrive(&Selection::All).await.expect("answered");
    let second = actor.offer(bound("second")).await;

    let delivered = payloads(&drain(&actor).await);

    let is_stored = matches!(second, Pushed::Stored { .. });
    let wanted: &[&str] = if is_stored { &["second"] } else { &["first"] };
    assert_eq!(delivered, wanted, "R16: the second push is {second:?}");
}
