//! A batch completes exactly once, and every caller that reads or waits for it learns
//! of the completion (B1, B5).

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, Priority, QueueName,
    batch::{BatchOutcome, BatchState, NewBatch, OnComplete},
    operator::{Cancelled, JobState},
    outcome::{Extended, Settled},
};

use crate::{
    cases::batches::fixture::{COMPLETE, batch, completed, of, telling},
    cases::case,
    harness::{
        checks::{assert_applied, drain, settle_all},
        store::Store,
        times::HELD,
    },
};

case!(an_open_batch_does_not_complete: B1 => Batches);
/// An open batch whose pieces have all ended has not completed: more pieces may be
/// added.
async fn an_open_batch_does_not_complete(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&telling("b")).await;
    actor.fill(&made, ["a"]).await;
    assert_eq!(completed(&drain(&actor).await), 0);
    actor.recover_all().await;
    actor.assert_running(&made).await;

    actor.fill(&made, ["b"]).await;
    assert_eq!(of(&drain(&actor).await, &made), 1);
    actor.assert_running(&made).await;
    let status = actor.close(&made).await;

    assert_eq!(status.outcome(), Some(BatchOutcome::Done));
    assert_eq!((status.total, status.done), (2, 2));
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(an_empty_batch_completes_at_once: B1 B5 => Batches);
/// An empty batch completes in the call that seals it.
async fn an_empty_batch_completes_at_once(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&telling("b")).await;
    actor.assert_running(&made).await;

    let status = actor.close(&made).await;

    assert_eq!(status.state, BatchState::Completed(BatchOutcome::Done));
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(the_last_piece_completes: B5 => Batches);
/// The last piece completes a sealed batch, and pushes its completion job once.
async fn the_last_piece_completes(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 3).await;
    let held = actor.take(3).await;
    assert_applied(&settle_all(&actor, &held[..2], &Disposition::Done).await);
    actor.assert_running(&made).await;
    assert_eq!(actor.take(9).await, [], "nothing is told yet");

    actor.finish(&held[2]).await;

    actor.assert_completed(&made, BatchOutcome::Done).await;
    let after = drain(&actor).await;
    assert_eq!((after.len(), completed(&after)), (1, 1));
    let created_at = actor.status(&made).await.created_at;
    assert_eq!(*after[0].job(), made.completion_job(created_at));
    assert_eq!(after[0].batch, None);
    actor.recover_all().await;
    assert_eq!(drain(&actor).await, []);
}

case!(a_completion_job_is_whole: B5 R2 => Batches);
/// The completion job is delivered with the payload and options that were requested.
async fn a_completion_job_is_whole(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new(vec![0, 255])
        .header("name", "value")
        .max_attempts(NonZeroU16::new(7).expect("not zero"));
    let new = NewBatch::new(batch("b")).on_complete(OnComplete::new(job.clone()));
    actor.submit(&new, 0).await;

    let completed = actor.take_one().await;

    assert_eq!((&completed.payload, &completed.headers), (&job.payload, &job.headers));
    assert_eq!(
        (completed.max_attempts, completed.priority),
        (job.max_attempts, Priority::NORMAL)
    );
}

case!(a_completion_job_of_a_known_id_is_a_duplicate: B5 R4 => Batches ClientIds);
/// A client has pushed a job with the id of the completion job. The completion pushes no
/// second job of that id.
async fn a_completion_job_of_a_known_id_is_a_duplicate(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 1).await;
    let created_at = actor.status(&made).await.created_at;
    actor.store_one(NewJob::new("own").id(made.completion_job(created_at))).await;

    let after = drain(&actor).await;

    actor.assert_completed(&made, BatchOutcome::Done).await;
    let counts = (after.len(), of(&after, &made), completed(&after));
    assert_eq!(counts, (2, 1, 0), "R4: all jobs, pieces and completion jobs");
}

case!(a_completion_is_read_later: B5 => Batches);
/// A caller that did not wait for the completion of a batch can read the batch's record
/// later.
async fn a_completion_is_read_later(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 1).await;
    let held = actor.take_one().await;
    actor.finish(&held).await;

    let late = store.actor("late").await;
    let wait = Duration::from_secs(30);
    let limit = wait + store.response_limit();
    let (known, took) =
        store.within(limit, late.batches().wait_batch(&made, wait)).await;

    let status = known.expect("answered").expect("the batch is there");
    assert_eq!(status.outcome(), Some(BatchOutcome::Done));
    assert!(took < wait, "it was told at once");
}

case!(a_completion_goes_to_another_queue: B5 => Batches);
/// If the completion job belongs to another queue, it arrives there exactly once,
/// whichever call forwards it.
async fn a_completion_goes_to_another_queue(store: &Store) {
    if store.fit(&["jobs", "others"]).len() < 2 {
        return;
    }
    let (here, there) = (store.actor("w1").await, store.actor_on("w2", "others").await);
    let others = QueueName::new("others").expect("a valid name");
    let on_complete = OnComplete::new(NewJob::new(COMPLETE)).queue(others);
    let new = NewBatch::new(batch("b")).on_complete(on_complete);
    let made = here.submit(&new, 2).await;
    let held = here.take(2).await;

    assert_applied(&settle_all(&here, &held, &Disposition::Done).await);
    for _ in 0..3 {
        here.recover_all().await;
    }

    here.assert_completed(&made, BatchOutcome::Done).await;
    assert_eq!(drain(&here).await, []);
    let after = drain(&there).await;
    assert_eq!((after.len(), completed(&after)), (1, 1));
    let created_at = here.status(&made).await.created_at;
    let own = QueueName::new("jobs").expect("a valid name");
    assert_eq!(*after[0].job(), made.completion_job_elsewhere(created_at, &own));
}

case!(completions_of_two_queues_are_two_jobs: B5 R19 => Batches);
/// Two queues have a batch of the same name, created at the same time as far as the store
/// tells, and both push their completion job to the same third queue. Both jobs arrive.
async fn completions_of_two_queues_are_two_jobs(store: &Store) {
    if store.fit(&["jobs", "more", "others"]).len() < 3 {
        return;
    }
    store.stop_clock();
    let (one, other) = (store.actor("w1").await, store.actor_on("w2", "more").await);
    let there = store.actor_on("w3", "others").await;
    let others = QueueName::new("others").expect("a valid name");
    let telling = |name: &str, payload: &'static str| {
        let on_complete = OnComplete::new(NewJob::new(payload)).queue(others.clone());
        NewBatch::new(batch(name)).on_complete(on_complete)
    };
    // The clock of a server without the proxy runs on. Of so many pairs, some are equal.
    const PAIRS: usize = 20;
    for number in 0..PAIRS {
        let name = format!("b{number}");
        let made = one.make(&telling(&name, "of one")).await;
        other.make(&telling(&name, "of other")).await;
        one.close(&made).await;
        other.close(&made).await;
    }
    one.recover_all().await;
    other.recover_all().await;

    let after = drain(&there).await;

    let of = |payload: &str| after.iter().filter(|it| it.payload == payload).count();
    assert_eq!((of("of one"), of("of other")), (PAIRS, PAIRS), "B5: of two queues");
}

case!(whatever_completes_tells_another_queue: B5 B7 => Batches);
/// If the last piece of a batch is ended by a heartbeat, a worker's release or an
/// operator's cancel, the completion job arrives in the other queue at once, without a
/// recovery.
async fn whatever_completes_tells_another_queue(store: &Store) {
    if store.fit(&["jobs", "others"]).len() < 2 {
        return;
    }
    let (here, there) = (store.actor("w1").await, store.actor_on("w2", "others").await);
    let mut held = Vec::new();
    for name in ["heartbeat", "release_worker", "cancel"] {
        let others = QueueName::new("others").expect("a valid name");
        let on_complete = OnComplete::new(NewJob::new(COMPLETE)).queue(others);
        let new = NewBatch::new(batch(name)).on_complete(on_complete);
        let (made, worker) = (here.submit(&new, 1).await, here.acting_as(name));
        held.push((worker.take_one().await, worker, made));
    }
    let [(kept, keeper, stopped), (_, leaver, left), (job, _, _)] = &held[..] else {
        panic!("three pieces are leased")
    };
    here.call_off(stopped).await;
    here.call_off(left).await;
    assert_eq!(there.take(5).await, []);

    assert_eq!(keeper.keep(kept, HELD).await.expect("answered"), Extended::Cancelled);
    assert_eq!(completed(&drain(&there).await), 1);
    leaver.release_worker(leaver.worker()).await.expect("answered");
    assert_eq!(completed(&drain(&there).await), 1);
    let cancelled = here.cancel(job.job()).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    assert_eq!(completed(&drain(&there).await), 1);
}

case!(a_settlement_of_many_pieces_tells_another_queue: B5 => Batches);
/// If one call ends so many pieces that it takes several steps, the completion job arrives
/// in the other queue at once, too.
async fn a_settlement_of_many_pieces_tells_another_queue(store: &Store) {
    if store.fit(&["jobs", "others"]).len() < 2 {
        return;
    }
    let (here, there) =
        (store.actor_in_steps("w1").await, store.actor_on("w2", "others").await);
    let others = QueueName::new("others").expect("a valid name");
    let on_complete = OnComplete::new(NewJob::new(COMPLETE)).queue(others);
    here.submit(&NewBatch::new(batch("many")).on_complete(on_complete), 30).await;
    let held = here.take(30).await;
    assert_eq!(held.len(), 30);

    assert_applied(&settle_all(&here, &held, &Disposition::Done).await);

    assert_eq!(completed(&drain(&there).await), 1);
}

case!(workers_at_once_complete_once: B5 => Batches);
/// If several workers end the last pieces at the same time, the batch completes once.
async fn workers_at_once_complete_once(store: &Store) {
    let maker = store.actor("maker").await;
    for round in 0..5 {
        let made = maker.submit(&telling(&format!("b{round}")), 8).await;
        let mut workers = Vec::new();
        for index in 0..8 {
            let worker = store.actor(&format!("w{round}-{index}")).await;
            let held: Delivery = worker.take_one().await;
            workers.push((worker, held));
        }
        let settling = workers.into_iter().map(|(worker, held)| {
            tokio::spawn(async move { worker.say(&held, Disposition::Done).await })
        });
        for settled in settling.collect::<Vec<_>>() {
            assert_eq!(settled.await.expect("the task ends"), Settled::Applied);
        }
        maker.assert_completed(&made, BatchOutcome::Done).await;
        assert_eq!(completed(&drain(&maker).await), 1);
    }
}

case!(a_waiter_is_told: B5 => Batches);
/// A wait for a batch returns as soon as the batch completes, and not before.
async fn a_waiter_is_told(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 1).await;
    let held = actor.take_one().await;
    let (waiter, awaited) = (store.actor("waiter").await, made.clone());
    let wait = Duration::from_secs(30);
    let waiting = tokio::spawn(async move {
        let known = waiter.batches().wait_batch(&awaited, wait).await;
        known.expect("answered").expect("the batch is there")
    });
    store.settled().await;
    assert!(!waiting.is_finished(), "nothing has completed");

    actor.finish(&held).await;

    let (completed, _) = store.within(wait, waiting).await;
    assert_eq!(completed.expect("the wait ends").outcome(), Some(BatchOutcome::Done));
}

case!(a_wait_for_a_batch_ends_in_time: R21 => Batches);
/// If a caller waits for a batch that does not complete, the wait ends after its time
/// limit and returns the batch's current state.
async fn a_wait_for_a_batch_ends_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 1).await;

    for wait in [Duration::ZERO, Duration::from_millis(300)] {
        let call = actor.batches().wait_batch(&made, wait);
        let (known, took) = store.within(wait + store.response_limit(), call).await;
        let status = known.expect("answered").expect("the batch is there");
        assert_eq!((status.state, status.waiting), (BatchState::Sealed, 1));
        assert!(took >= wait, "{took:?}");
    }

    let endless = actor.batches().wait_batch(&made, Duration::MAX).await;
    assert!(endless.is_err(), "{endless:?}");
}

case!(dropped_settlements_complete_once: B5 R22 => Batches);
/// If the futures of settlements are dropped, the batch still completes, exactly once.
async fn dropped_settlements_complete_once(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 6).await;
    for one in actor.take_briefly(6).await {
        let settling = actor.say(&one, Disposition::Done);
        tokio::select! {
            biased;
            () = tokio::task::yield_now() => {}
            _ = settling => {}
        }
    }
    store.settled().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    let after = drain(&actor).await;

    actor.assert_completed(&made, BatchOutcome::Done).await;
    assert_eq!(completed(&after), 1);
    assert_eq!(actor.status(&made).await.done, 6);
}
