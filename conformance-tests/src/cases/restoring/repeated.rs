//! A restore can be repeated: a job whose id is known is left as it is (R34, R4).

use relq_core::{
    NewJob,
    operator::{JobState, JobView},
    outcome::{DuplicateOf, Pushed},
};

use super::fixture::{was_dead, was_ready, was_scheduled, yesterday};
use crate::{
    cases::{case, times::now},
    harness::{
        actor::Actor,
        checks::{delivers, duplicate, id, retry_after},
        restorer::but,
        store::Store,
        times::{HELD, LIFE},
    },
};

/// Asserts that a restore of the job is answered as a duplicate of itself.
async fn is_known(actor: &Actor, job: JobView) {
    let known = job.id.as_ref().map(|id| duplicate(id, DuplicateOf::Id));
    assert_eq!(actor.restore(&[job]).await, Vec::from_iter(known), "R34");
}

case!(a_repeated_restore_stores_nothing: R34 R4 => Restore Delay);
/// A second call with the same jobs changes nothing.
async fn a_repeated_restore_stores_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [
        was_ready("ready"),
        was_scheduled("scheduled", now(store).plus(HELD)),
        was_dead("dead", yesterday(store)),
    ];
    actor.restore_all(&jobs).await;

    let again = actor.restore(&jobs).await;

    let known = ["ready", "scheduled", "dead"];
    assert_eq!(again, known.map(|it| duplicate(&id(it), DuplicateOf::Id)), "R34");
    let states = [JobState::Ready, JobState::Scheduled, JobState::Dead];
    for (state, job) in states.into_iter().zip(jobs) {
        actor.lists(state, &[job]).await;
    }
}

case!(a_restore_continues_where_it_was_stopped: R34 R4 => Restore);
/// A call with known and new jobs stores the new ones.
async fn a_restore_continues_where_it_was_stopped(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&["a", "b"].map(was_ready)).await;

    let stored = actor.restore(&["a", "c", "b"].map(was_ready)).await;

    let known = |name| duplicate(&id(name), DuplicateOf::Id);
    assert_eq!(stored, [known("a"), Pushed::Stored(id("c")), known("b")], "R34");
    delivers(&actor, ["a", "b", "c"]).await;
}

case!(the_same_id_twice_in_a_call_is_stored_once: R34 R4 => Restore Delay);
/// The second job with an id in one call is a duplicate of the first, in whatever states
/// they are.
async fn the_same_id_twice_in_a_call_is_stored_once(store: &Store) {
    let actor = store.actor("worker").await;
    let due = now(store).plus(HELD);
    let states = || {
        [was_ready("job"), was_scheduled("job", due), was_dead("job", yesterday(store))]
    };
    for (round, first) in states().into_iter().enumerate() {
        let named = id(&format!("job {round}"));
        let twice = |job: JobView| but(job, |it| it.id = Some(named.clone()));
        for second in states() {
            let jobs = [twice(first.clone()), twice(second)];
            let answers = actor.restore(&jobs).await;
            let known = duplicate(&named, DuplicateOf::Id);
            assert_eq!(answers[1], known, "R34: the second of {round}");
        }
    }
    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.scheduled, stats.dead), (1, 1, 1), "R34");
}

case!(a_job_in_any_state_is_left_as_it_is: R34 R4 => Restore);
/// A job that was claimed, failed or has ended since it was restored is not restored
/// again.
async fn a_job_in_any_state_is_left_as_it_is(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&[was_ready("job")]).await;

    let held = actor.take_one().await;
    is_known(&actor, was_ready("job")).await;
    actor.say(&held, retry_after(LIFE)).await;
    is_known(&actor, was_dead("job", yesterday(store))).await;
    store.advance(2 * LIFE).await;
    actor.recover_all().await;
    actor.finish(&actor.take_one().await).await;
    is_known(&actor, was_ready("job")).await;

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead, stats.finished), (0, 0, 1), "R34");
}

case!(a_pushed_job_is_not_restored_over: R34 R4 => Restore);
/// A job whose id a producer chose is left as it is, and a push of a restored id stores
/// nothing.
async fn a_pushed_job_is_not_restored_over(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("pushed").id(id("pushed"))).await;
    actor.restore_all(&[was_dead("dead", yesterday(store))]).await;

    is_known(&actor, was_dead("pushed", yesterday(store))).await;
    let offered = actor.offer(NewJob::new("new").id(id("dead"))).await;

    assert_eq!(offered, duplicate(&id("dead"), DuplicateOf::Id), "R4");
    delivers(&actor, ["pushed"]).await;
    assert_eq!(actor.figures().await.dead, 1, "R34");
}
