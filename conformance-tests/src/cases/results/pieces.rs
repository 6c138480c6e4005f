//! Pieces of batches keep their results like other jobs (R29, B7, B8).

use relq_core::{
    Disposition, JobId, NewJob, QueueName,
    batch::{Added, BatchId, NewBatch, OnComplete},
    operator::Selection,
    outcome::Extended,
    results::JobResult,
};

use super::fixture::{UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, retry_now},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

/// Creates a batch of these pieces and seals it. Returns the ids of the pieces.
async fn submit(
    actor: &Actor,
    batch: &BatchId,
    pieces: impl IntoIterator<Item = NewJob>,
) -> Vec<JobId> {
    let batches = actor.batch_queue().expect("the backend supports batches");
    batches.create(&NewBatch::new(batch.clone())).await.expect("answered");
    let pieces: Vec<_> = pieces.into_iter().collect();
    let added = batches.add(batch, &pieces, None).await.expect("answered");
    batches.seal(batch).await.expect("answered");
    match added {
        Added::Stored(pushed) => pushed.iter().map(|one| one.job().clone()).collect(),
        other => panic!("not added: {other:?}"),
    }
}

fn batch() -> BatchId {
    batch_of("b")
}

fn batch_of(id: &str) -> BatchId {
    BatchId::new(id).expect("a valid id")
}

async fn call_off(actor: &Actor) {
    let batches = actor.batch_queue().expect("the backend supports batches");
    batches.cancel_batch(&batch()).await.expect("answered");
}

case!(a_piece_has_its_result: R29 B2 => Results Batches);
/// The result of a piece can be read like that of any job, however the piece ended.
async fn a_piece_has_its_result(store: &Store) {
    let actor = store.actor("worker").await;
    let pieces = ["done", "empty", "dropped", "dead", "cancelled"];
    let pieces = pieces.map(|name| kept(name).header("name", name));
    let plain = NewJob::new("plain");
    let jobs = submit(&actor, &batch(), pieces.into_iter().chain([plain])).await;
    let mut told = vec![Some(UNFINISHED); 5];
    told.push(None);
    assert_eq!(actor.told_of(&jobs).await, told);

    for held in actor.take(6).await {
        assert_eq!(held.keeps_result, held.payload != "plain");
        match &held.payload[..] {
            b"done" => actor.ends(&held, done_with("result")).await,
            b"dropped" => actor.ends(&held, Disposition::Discard).await,
            b"dead" => actor.ends(&held, dead("no")).await,
            b"cancelled" => drop(actor.cancel(held.job()).await.expect("answered")),
            _ => actor.finish(&held).await,
        }
    }

    let mut told = actor.told_of(&jobs).await;
    let buried = told.remove(3);
    assert!(matches!(buried, Some(JobResult::Dead { .. })), "R29: {buried:?}");
    assert_eq!(
        told,
        [
            Some(done("result")),
            Some(done("")),
            Some(JobResult::Discarded),
            Some(JobResult::Cancelled { leader: None }),
            None
        ]
    );
    actor.redrive(&Selection::All).await.expect("answered");
    actor.assert_told(&jobs[3], UNFINISHED).await;
    actor.ends(&actor.take_one().await, done_with("at last")).await;
    actor.assert_told(&jobs[3], done("at last")).await;
}

case!(a_piece_shows_its_progress: R29 B9 => Results Batches);
/// The progress of a piece is shown over its attempts.
async fn a_piece_shows_its_progress(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = submit(&actor, &batch(), [kept("piece"), kept("other")]).await;
    let held = actor.take(2).await;
    let held = held.iter().find(|one| one.payload == "piece").expect("it is held");
    actor.shows(held, b"half").await;

    actor.ends(held, retry_now()).await;
    actor.recover_all().await;

    let again = actor.take_one().await;
    assert_eq!(again.batch, Some(batch()), "B9: it is still a piece");
    actor.assert_told(&jobs[0], super::fixture::reported("half")).await;
    actor.assert_told(&jobs[1], UNFINISHED).await;
    actor.ends(&again, done_with("result")).await;
    actor.assert_told(&jobs[0], done("result")).await;
}

case!(a_piece_that_is_dropped_with_its_batch_says_so: R29 B7 => Results Batches);
/// When a batch is cancelled, its waiting pieces are told as cancelled. A leased piece is
/// told as cancelled when its worker's heartbeat ends it or when it would come back, and
/// as done if it is finished before.
async fn a_piece_that_is_dropped_with_its_batch_says_so(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    let pieces = (0..6).map(|number| kept(format!("piece {number}")));
    let jobs = submit(&worker, &batch(), pieces).await;
    let held = worker.take(3).await;
    let brief = worker.acting_as("brief").take_one_briefly().await;
    let of = |one: &relq_core::Delivery| one.job().clone();

    call_off(&operator).await;

    let is_held = |job: &JobId| held.iter().chain([&brief]).any(|it| it.job() == job);
    for job in &jobs {
        let wanted = if is_held(job) {
            UNFINISHED
        } else {
            JobResult::Cancelled { leader: None }
        };
        operator.assert_told(job, wanted).await;
    }
    let told = worker.keep(&held[0], HELD).await.expect("answered");
    assert_eq!(told, Extended::Cancelled, "B7");
    operator.assert_told(&of(&held[0]), JobResult::Cancelled { leader: None }).await;
    worker.ends(&held[1], done_with("result")).await;
    operator.assert_told(&of(&held[1]), done("result")).await;
    worker.ends(&held[2], retry_now()).await;
    operator.recover_all().await;
    operator.assert_told(&of(&held[2]), JobResult::Cancelled { leader: None }).await;
    store.outlast_brief_leases().await;
    operator.recover_all().await;
    operator.assert_told(&of(&brief), JobResult::Cancelled { leader: None }).await;
}

case!(a_piece_that_is_added_again_records_nothing: R29 B1 => Results Batches ClientIds);
/// A piece whose id is known changes nothing of what is told of it.
async fn a_piece_that_is_added_again_records_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let batches = actor.batch_queue().expect("the backend supports batches");
    let mine = [kept("piece").id(id("mine"))];
    batches.create(&NewBatch::new(batch())).await.expect("answered");
    let added = batches.add(&batch(), &mine, None).await.expect("answered");
    let Added::Stored(pushed) = added else { panic!("not added: {added:?}") };
    let job = pushed[0].job().clone();
    actor.ends(&actor.take_one().await, done_with("result")).await;

    batches.add(&batch(), &mine, None).await.expect("answered");

    actor.assert_told(&job, done("result")).await;
    assert_eq!(actor.take(1).await, []);
}

/// Creates a batch with this completion job and without pieces, and seals it. Returns the
/// id of its completion job, which goes to the queue of the actor or to another one.
async fn complete(actor: &Actor, batch: &BatchId, on_complete: OnComplete) -> JobId {
    let batches = actor.batch_queue().expect("the backend supports batches");
    let is_here = on_complete.queue.is_none();
    let new = NewBatch::new(batch.clone()).on_complete(on_complete);
    batches.create(&new).await.expect("answered");
    let sealed = batches.seal(batch).await.expect("answered");
    let created_at = sealed.expect("the batch is there").created_at;
    if is_here {
        batch.completion_job(created_at)
    } else {
        let own = QueueName::new("jobs").expect("a valid name");
        batch.completion_job_elsewhere(created_at, &own)
    }
}

case!(a_completion_job_keeps_its_result: R29 B5 => Results Batches);
/// The completion job of a batch keeps its result, in the queue of the batch and in
/// another one, with a delay and without one.
async fn a_completion_job_keeps_its_result(store: &Store) {
    let here = store.actor("worker").await;
    let late = batch_of("late");
    let job = complete(&here, &late, OnComplete::new(kept("late").delay(BRIEF))).await;
    here.assert_told(&job, UNFINISHED).await;
    store.advance(PAST_BRIEF).await;
    here.recover_all().await;
    has_its_result(&here, &job).await;

    let job = complete(&here, &batch(), OnComplete::new(kept("here"))).await;
    has_its_result(&here, &job).await;

    if store.fit(&["jobs", "others"]).len() < 2 {
        return;
    }
    let there = store.actor_on("w2", "others").await;
    let others = QueueName::new("others").expect("a valid name");
    let on_complete = OnComplete::new(kept("there")).queue(others);
    let job = complete(&here, &batch_of("there"), on_complete).await;
    here.recover_all().await;
    has_its_result(&there, &job).await;
}

async fn has_its_result(actor: &Actor, job: &JobId) {
    actor.assert_told(job, UNFINISHED).await;
    let held = actor.take_one().await;
    assert!(held.keeps_result, "R29: {held:?}");
    actor.ends(&held, done_with("result")).await;
    actor.assert_told(job, done("result")).await;
}
