//! Pushes repeated with the same job id.

use std::time::Duration;

use relq_core::{
    Disposition, NewJob,
    capabilities::Capability,
    operator::{Cancelled, JobState, Selection},
    outcome::{DuplicateOf, Extended, Pushed},
};

use super::{mine, stay_within_window};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, duplicate, id, key, listed, retry_after, retry_now,
            settle_all, token,
        },
        store::Store,
        times::{HELD, PAST_WINDOW},
    },
};

async fn is_known(actor: &Actor) {
    let again = actor.offer(NewJob::new("second").id(id("mine"))).await;
    assert_eq!(again, duplicate(&id("mine"), DuplicateOf::Id));
}

case!(an_id_is_stored_once: R4 => ClientIds);
/// A second push with the id of an existing job changes nothing, not even the payload.
async fn an_id_is_stored_once(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(mine()).await;

    is_known(&actor).await;

    delivers(&actor, ["first"]).await;
}

case!(an_id_is_the_jobs_own: R4 => ClientIds);
/// A job is delivered with the id that its producer chose, which may be any text.
async fn an_id_is_the_jobs_own(store: &Store) {
    let actor = store.actor("worker").await;
    let odd = id("a:b*c{d}[e]? 'é\u{1f600}");

    assert_eq!(actor.offer(NewJob::new("job").id(odd.clone())).await.job(), &odd);

    assert_eq!(actor.take_one().await.job(), &odd);
}

case!(ids_that_begin_alike_are_two: R4 => ClientIds);
/// Two ids are different if one begins with the other, or if only their case differs.
async fn ids_that_begin_alike_are_two(store: &Store) {
    let actor = store.actor("producer").await;

    actor.store([NewJob::new("1").id(id("a")), NewJob::new("2").id(id("a:"))]).await;
    actor.store_one(NewJob::new("3").id(id("A"))).await;

    assert_eq!(actor.figures().await.ready, 3);
}

case!(the_first_of_an_id_in_a_call_wins: R4 => ClientIds);
/// If one push contains several jobs with the same id, the first of them is stored.
async fn the_first_of_an_id_in_a_call_wins(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs = [mine(), NewJob::new("second").id(id("mine"))];

    let pushed = actor.push(&jobs, None).await.expect("the push is taken");

    let stored = Pushed::Stored(id("mine"));
    assert_eq!(pushed, [stored, duplicate(&id("mine"), DuplicateOf::Id)]);
    delivers(&actor, ["first"]).await;
}

case!(an_id_is_known_while_scheduled: R4 => ClientIds Delay);
/// A push with the id of a scheduled job is a duplicate.
async fn an_id_is_known_while_scheduled(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(mine().delay(HELD)).await;

    is_known(&actor).await;

    assert_eq!(actor.figures().await.unfinished(), 1);
}

case!(an_id_is_known_while_leased: R4 => ClientIds);
/// A push with the id of a leased job is a duplicate.
async fn an_id_is_known_while_leased(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    let _held = actor.take_one().await;

    is_known(&actor).await;

    assert_eq!(actor.figures().await.unfinished(), 1);
}

case!(an_id_is_known_while_dead: R4 => ClientIds);
/// A push with the id of a dead letter is a duplicate.
async fn an_id_is_known_while_dead(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    is_known(&actor).await;

    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(an_id_is_known_after_done: R4 => ClientIds);
/// A push with the id of a job that was just acked is a duplicate.
async fn an_id_is_known_after_done(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    let held = actor.take_one().await;
    actor.finish(&held).await;

    is_known(&actor).await;

    assert_eq!(actor.take(1).await, []);
}

case!(an_id_is_known_after_discard: R4 => ClientIds);
/// A push with the id of a job that was just discarded is a duplicate.
async fn an_id_is_known_after_discard(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    let held = actor.take_one().await;
    actor.say(&held, Disposition::Discard).await;

    is_known(&actor).await;

    assert_eq!(actor.take(1).await, []);
}

case!(an_id_is_known_after_cancel: R4 => ClientIds);
/// A push with the id of a job that was just cancelled is a duplicate.
async fn an_id_is_known_after_cancel(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    actor.cancel(&id("mine")).await.expect("the cancel is answered");

    is_known(&actor).await;

    assert_eq!(actor.take(1).await, []);
}

case!(an_id_is_known_after_its_letter_is_purged: R4 => ClientIds);
/// A push with the id of a dead letter that was just purged is a duplicate.
async fn an_id_is_known_after_its_letter_is_purged(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    assert_eq!(actor.purge_dead(&Selection::All).await.expect("answered"), 1);

    is_known(&actor).await;

    assert_eq!(actor.take(1).await, []);
}

case!(a_purge_forgets_ids: R4 => ClientIds);
/// After a purge of the whole queue, the ids of its jobs can be used again, also of those
/// that had ended.
async fn a_purge_forgets_ids(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("done").id(id("ended"))).await;
    actor.finish(&actor.take_one().await).await;
    actor.store_one(mine()).await;
    actor.purge().await.expect("the purge is answered");

    for name in ["mine", "ended"] {
        actor.store_one(NewJob::new(name).id(id(name))).await;
    }

    delivers(&actor, ["mine", "ended"]).await;
}

case!(a_refused_push_uses_no_id_up: R4 R5 => ClientIds);
/// The ids of a refused push can be used again.
async fn a_refused_push_uses_no_id_up(store: &Store) {
    let actor = store.actor("producer").await;
    let bad = NewJob::new("bad").lease(Duration::ZERO);
    let refused = actor.push(&[mine(), bad], None).await;
    assert!(refused.is_err(), "{refused:?}");

    actor.store_one(mine()).await;

    delivers(&actor, ["first"]).await;
}

case!(racing_pushes_of_an_id_store_one: R4 R12 => ClientIds);
/// If many pushes of the same id run at the same time, one job is stored.
async fn racing_pushes_of_an_id_store_one(store: &Store) {
    let mut pushes = Vec::new();
    for index in 0..16 {
        let actor = store.actor(&format!("p{index}")).await;
        pushes.push(tokio::spawn(async move { actor.offer(mine()).await }));
    }

    let mut answers = Vec::new();
    for push in pushes {
        answers.push(push.await.expect("the push ends"));
    }

    let stored = answers.iter().filter(|one| matches!(one, Pushed::Stored(_))).count();
    assert_eq!(stored, 1, "{answers:?}");
    delivers(&store.actor("w").await, ["first"]).await;
}

case!(an_id_is_forgotten_after_the_window: R4 => ClientIds);
/// An id becomes free five minutes after its job has ended.
async fn an_id_is_forgotten_after_the_window(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    drain(&actor).await;
    stay_within_window(store).await;
    is_known(&actor).await;

    store.advance(PAST_WINDOW).await;

    actor.store_one(NewJob::new("later").id(id("mine"))).await;
    delivers(&actor, ["later"]).await;
}

case!(an_id_is_known_as_long_as_its_job: R4 => ClientIds);
/// An id stays known for five minutes after its job has ended, however long ago the job
/// was pushed.
async fn an_id_is_known_as_long_as_its_job(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(mine()).await;
    store.advance(PAST_WINDOW).await;
    is_known(&actor).await;
    drain(&actor).await;

    is_known(&actor).await;

    assert_eq!(actor.take(1).await, []);
}

case!(two_jobs_of_an_id_are_apart: R4 R16 => ClientIds PushTokens Unique);
/// Two jobs in the store can have the same id, and one of them holds a unique key. A
/// push with that key is a duplicate, and a cancel of the id that this push returns
/// cancels the job that holds the key.
async fn two_jobs_of_an_id_are_apart(store: &Store) {
    for first in ["by id", "by token"] {
        let actor = store.actor_on("worker", first).await;
        actor.store_one(NewJob::new("by id").id(token("t").job_id(0))).await;
        let jobs = [NewJob::new("by token").unique(key("k"))];
        let answer = actor.push(&jobs, Some(&token("t"))).await.unwrap_or_default();
        let mut held = actor.take(2).await;
        held.sort_by_key(|one| one.payload != first);
        settle_all(&actor, &held, &retry_after(HELD)).await;

        let told = actor.offer(NewJob::new("again").unique(key("k"))).await;
        actor.cancel(told.job()).await.expect("answered");

        // Some backends refuse "by token" as a duplicate, because its id is in use.
        // Then `k` is free, so `offer` stores "again", and the cancel removes it.
        let stored = answer.iter().any(|one| matches!(one, Pushed::Stored(_)));
        assert_eq!(held.len(), 1 + usize::from(stored));
        let left = listed(&actor.list(JobState::Scheduled, 10).await);
        assert_eq!(left, ["by id"], "{first} was first to wait");
        actor.store_one(NewJob::new("free again").unique(key("k"))).await;
    }
}

case!(an_id_of_relqs_own_loses_nothing: R4 R1 => ClientIds Delay);
/// If a client pushes a job with an id that relq generated for another job, neither job
/// is lost, even if the other job is dead, or urgent and given back or retried, and the new
/// one is scheduled.
async fn an_id_of_relqs_own_loses_nothing(store: &Store) {
    let actor = store.actor("producer").await;
    let made = actor.store_one("first").await;

    let again = actor.offer(NewJob::new("second").id(made)).await;

    let stored = usize::from(matches!(again, Pushed::Stored(_)));
    assert_eq!(actor.take(10).await.len(), 1 + stored);
    actor.release_worker(actor.worker()).await.expect("answered");
    assert_eq!(drain(&actor).await.len(), 1 + stored);

    let made = actor.store_one("third").await;
    actor.say(&actor.take_one().await, dead("no")).await;
    actor.offer(NewJob::new("fourth").id(made.clone()).delay(HELD)).await;
    let redriven = actor.redrive(&Selection::Only(vec![made])).await;
    assert_eq!(redriven.expect("answered").moved, 1);
    assert_eq!(actor.take_one().await.payload, "third");

    for disposition in [Disposition::GiveBack, retry_now()] {
        let mut urgent = NewJob::new("urgent");
        if actor.capabilities().supports(Capability::Priority) {
            urgent = urgent.priority(actor.class().most_urgent());
        }
        let made = actor.store_one(urgent).await;
        let held = actor.take_one().await;
        actor.offer(NewJob::new("later").id(made).delay(HELD)).await;

        actor.say(&held, disposition).await;

        let again = actor.take_one().await;
        assert_eq!(again.payload, "urgent");
        actor.finish(&again).await;
    }
}

case!(odd_ids_live_a_whole_life: R4 R2 => ClientIds);
/// A job whose id has unusual characters can be claimed, extended, buried, redriven,
/// released and cancelled.
async fn odd_ids_live_a_whole_life(store: &Store) {
    let actor = store.actor("a:b.c").await;
    for odd in ["a/b", "/", "*", "%", "a:0:t/x", "\"'\\", "0", "-1", " ", "[a-z]*", "~"]
    {
        let job = actor.store_one(NewJob::new("job").id(id(odd))).await;
        let held = actor.take_one().await;
        assert_eq!(held.job(), &job);
        let kept = actor.keep(&held, HELD).await;
        assert!(matches!(kept, Ok(Extended::Until(_))), "{odd}: {kept:?}");
        actor.say(&held, dead("no")).await;
        let only = Selection::Only(vec![job.clone()]);
        assert_eq!(actor.redrive(&only).await.expect("answered").moved, 1, "{odd}");
        actor.take_one().await;
        assert_eq!(
            actor.release_worker(actor.worker()).await.expect("answered").jobs,
            1
        );
        let cancelled = actor.cancel(&job).await.expect("answered");
        assert_eq!(cancelled, Cancelled::Removed(JobState::Ready), "{odd}");
    }
}
