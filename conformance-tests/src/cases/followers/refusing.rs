//! Pushes that no leader makes right: pieces, completion jobs and the jobs of ticks follow
//! nobody, and a refused call changes nothing (R30, R5).

use relq_core::{
    Error, NewJob, ReliableQueueExt,
    batch::{BatchId, NewBatch, OnComplete},
    followers::CannotFollow,
    schedule::{ScheduleName, Tick},
    unique::OnDuplicate,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{drain, id, key, numbered, token},
        store::Store,
        times::{BRIEF, HELD},
    },
};

/// Asserts that a call was refused because of what its job asks for.
fn assert_refused<T>(answer: Result<T, Error>) {
    let error = answer.err().expect("R30: the call is refused");
    let is_it = matches!(error, Error::Invalid { .. } | Error::Unsupported { .. });
    assert!(is_it, "R30: {error:?}");
}

case!(a_piece_follows_nobody: R30 B1 => Followers ClientIds Batches);
/// A piece or a completion job with a job to follow is refused.
async fn a_piece_follows_nobody(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("leader")).await;
    let batches = actor.batch_queue().expect("the backend supports batches");
    let batch = BatchId::new("b").expect("a valid id");
    let last = OnComplete::new(following("leader", "last"));
    let other = NewBatch::new(BatchId::new("other").expect("a valid id"));

    assert_refused(batches.create(&other.on_complete(last)).await);
    actor.make(&NewBatch::new(batch.clone())).await;
    let pieces = ["good".into(), following("leader", "piece")];
    assert_refused(batches.add(&batch, &pieces, None).await);

    assert_eq!(actor.figures().await.unfinished(), 1, "R5: nothing is stored");
    assert_eq!(actor.close(&batch).await.total, 0, "R5: no piece is stored");
}

case!(the_job_of_a_tick_follows_nobody: R30 R28 => Followers ClientIds Schedules);
/// A tick whose job follows another one is refused, and not recorded.
async fn the_job_of_a_tick_follows_nobody(store: &Store) {
    let actor = store.actor("scheduler").await;
    actor.store_one(named("leader")).await;
    let scheduler = actor.schedule_queue().expect("the backend supports schedules");
    let name = ScheduleName::new("report").expect("a valid name");
    scheduler.put_schedule(&name, b"hourly").await.expect("answered");
    let before = scheduler.schedules().await.expect("answered").schedules;
    let tick = Tick::of(&before[0], before[0].last_tick.plus(BRIEF));
    store.advance(HELD).await;

    assert_refused(scheduler.push_tick(&tick, following("leader", "tick")).await);

    let after = scheduler.schedules().await.expect("answered").schedules;
    assert_eq!(after, before, "R28: the tick is not recorded");
    assert_eq!(actor.figures().await.unfinished(), 1, "R5: nothing is stored");
}

case!(a_refused_call_changes_nothing: R30 R5 R16
    => Followers ClientIds Unique Delay PushTokens);
/// A call that is refused because one of its jobs cannot follow stores none of the others,
/// moves no scheduled job, takes no unique key, and leaves its token free.
async fn a_refused_call_changes_nothing(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(NewJob::new("scheduled").delay(HELD).unique(key("k"))).await;
    let due = actor.figures().await.next_due_in.expect("R23: one is scheduled");
    let moves = NewJob::new("moves").delay(2 * HELD);
    let jobs = [
        moves.unique_or(key("k"), OnDuplicate::Reschedule),
        NewJob::new("keyed").unique(key("another")),
        named("leader"),
        following("leader", "good"),
        following("never", "bad"),
    ];

    let refused = actor.push(&jobs, Some(&token("call"))).await;

    let is_it =
        matches!(refused, Err(Error::CannotFollow { why: CannotFollow::Unknown, .. }));
    assert!(is_it, "R30: {refused:?}");
    let stats = actor.figures().await;
    assert_eq!(stats.unfinished(), 1, "R5: nothing is stored");
    assert!(stats.next_due_in.expect("R23: one is scheduled") <= due, "R5: not moved");
    actor.assert_cannot_follow_unknown("leader").await;
    let others = [NewJob::new("other").unique(key("another")), named("never")];
    let others =
        actor.push(&others, Some(&token("call"))).await.expect("R4: it is free");
    assert_eq!(others.len(), 2, "R5");
    assert_eq!(actor.figures().await.unfinished(), 3, "R5 R16: both are stored");
}

case!(a_forgotten_job_cannot_be_followed: R30 R4 => Followers ClientIds);
/// A job that was done, and whose id is forgotten, cannot be followed, whether a recovery
/// has removed the record of it or not.
async fn a_forgotten_job_cannot_be_followed(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(HELD).await;

    actor.assert_cannot_follow_unknown("leader").await;
    actor.recover_all().await;

    actor.assert_cannot_follow_unknown("leader").await;
}

case!(a_job_of_another_queue_cannot_be_followed: R30 R19 => Followers ClientIds);
/// A job follows one of its own queue only.
async fn a_job_of_another_queue_cannot_be_followed(store: &Store) {
    let actor = store.actor("producer").await;
    let other = store.actor_on("other", "others").await;
    other.store_one(named("leader")).await;

    actor.assert_cannot_follow_unknown("leader").await;
}

case!(a_leader_may_stand_on_an_earlier_page: R30 => Followers ClientIds);
/// A push of more jobs than a call takes is made in pages. A follower may stand on a later
/// page than its leader.
async fn a_leader_may_stand_on_an_earlier_page(store: &Store) {
    let actor = store.actor("producer").await;
    let page = actor.limits().max_jobs_per_call.get() as usize;
    let others = numbered(page).into_iter().map(NewJob::new);
    let mut jobs = vec![named("leader")];
    jobs.extend(others);
    jobs.push(following("leader", "follower"));

    let pushed = actor.queue().push_all(&jobs).await.expect("the push is taken");

    assert_eq!(pushed.len(), page + 2, "R5");
    actor.assert_held([("leader", "follower")]).await;
}

case!(the_refusal_names_the_job_that_cannot_be_followed: R30 R21 => Followers ClientIds);
/// The error of a refused push names the job and says why it cannot be followed.
async fn the_refusal_names_the_job_that_cannot_be_followed(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("cancelled")).await;
    actor.cancel(&id("cancelled")).await.expect("answered");

    for leader in ["cancelled", "never"] {
        let jobs = ["good".into(), following(leader, "follower")];
        let refused = actor.push(&jobs, None).await.expect_err("R30").full_message();
        assert!(refused.contains(leader), "R21: it names no {leader}: {refused}");
    }
}

case!(nobody_waits_for_a_job_whose_id_is_forgotten: R30 R4 => Followers ClientIds Delay);
/// A client pushes an id that relq made for another job, and a follower of that id. The call
/// is refused, or the follower runs: it never waits for a job whose end nobody remembers. If
/// the other job is scheduled, its id is known, and the call is refused.
async fn nobody_waits_for_a_job_whose_id_is_forgotten(store: &Store) {
    let actor = store.actor("producer").await;
    let made = actor.store_one("no id").await;
    let both = [NewJob::new("again").id(made.clone()), following(made.as_str(), "f")];

    let answer = actor.push(&both, None).await;

    if answer.is_err() {
        assert_eq!(actor.figures().await.unfinished(), 1, "R5: nothing is stored");
    }
    for _ in 0..both.len() {
        drain(&actor).await;
        actor.recover_all().await;
    }
    assert_eq!(actor.figures().await.unfinished(), 0, "R30: {answer:?}");
    let made = actor.store_one(NewJob::new("no id").delay(HELD)).await;
    let both = [NewJob::new("again").id(made.clone()), following(made.as_str(), "f")];
    actor.assert_cannot_follow(&both, &made, CannotFollow::Unknown).await;
}
