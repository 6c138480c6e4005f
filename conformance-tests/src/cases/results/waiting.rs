//! A call that waits for the end of a job is woken by it (R29, R21, R22).

use std::{thread, time::Duration};

use relq_core::{
    Delivery, Disposition, Error, JobId, NewJob, error::Operation, operator::Selection,
    results::JobResult,
};
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

use super::fixture::{UNFINISHED, done, done_with, kept, reported};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{attempts, dead, id, numbered, postpone, retry_now},
        store::Store,
        waiter::WAIT,
    },
};

/// A call that waits for the end of a job, in a task of its own.
type Waiting = JoinHandle<Option<JobResult>>;

/// Begins to wait for the end of a job, and returns once the call waits.
async fn wait_for(store: &Store, actor: &Actor, job: &JobId) -> Waiting {
    let waiting = begin(actor, job);
    store.settled().await;
    waiting
}

fn begin(actor: &Actor, job: &JobId) -> Waiting {
    let (actor, job) = (actor.clone(), job.clone());
    tokio::spawn(async move {
        actor.results().wait_result(&job, WAIT).await.expect("the call is answered")
    })
}

/// Asserts that a call was woken, and returned this.
async fn is_woken(store: &Store, waiting: Waiting, wanted: Option<JobResult>) {
    let (told, _) = store.within(store.response_limit(), waiting).await;
    assert_eq!(told.expect("the wait ends"), wanted, "R29");
}

case!(a_result_wakes_its_waiter: R29 R21 => Results, real_time);
/// The end of a job wakes the client that waits for it, with the result.
async fn a_result_wakes_its_waiter(store: &Store) {
    for (worker, client) in store.pairs().await {
        let job = client.store_one(kept("job")).await;
        let held = worker.take_one().await;
        let waiting = wait_for(store, &client, &job).await;
        assert!(!waiting.is_finished(), "R29: the job has not ended");

        worker.ends(&held, done_with("result")).await;

        is_woken(store, waiting, Some(done("result"))).await;
        worker.purge().await.expect("answered");
    }
}

case!(each_end_by_a_worker_wakes: R29 => Results);
/// Each way in which a worker ends a job wakes the client that waits for it.
async fn each_end_by_a_worker_wakes(store: &Store) {
    for (worker, client) in store.pairs().await {
        let ends =
            [done_with("result"), Disposition::Done, Disposition::Discard, dead("no")];
        for disposition in ends.into_iter().chain([retry_now()]) {
            let job = kept("job").max_attempts(attempts(1));
            let job = client.store_one(job).await;
            let held = worker.take_one().await;
            let waiting = wait_for(store, &client, &job).await;
            assert!(!waiting.is_finished(), "R29: the job has not ended");

            worker.ends(&held, disposition.clone()).await;

            let wanted = worker.result_of(&job).await;
            let has_ended = wanted.as_ref().is_some_and(JobResult::has_ended);
            assert!(has_ended, "R29: {disposition:?} leaves {wanted:?}");
            is_woken(store, waiting, wanted).await;
        }
        worker.purge().await.expect("answered");
    }
}

case!(a_cancel_wakes: R29 => Results);
/// A cancel of a ready or of a leased job wakes the client that waits for it.
async fn a_cancel_wakes(store: &Store) {
    for (worker, client) in store.pairs().await {
        for is_leased in [true, false] {
            let job = client.store_one(kept("job")).await;
            if is_leased {
                worker.take_one().await;
            }
            let waiting = wait_for(store, &client, &job).await;
            assert!(!waiting.is_finished(), "R29: the job has not ended");

            worker.cancel(&job).await.expect("answered");

            is_woken(store, waiting, Some(JobResult::Cancelled { leader: None })).await;
        }
        worker.purge().await.expect("answered");
    }
}

case!(a_burial_by_a_recovery_wakes: R29 R11 => Results);
/// A recovery that buries a job wakes the client that waits for it.
async fn a_burial_by_a_recovery_wakes(store: &Store) {
    for (worker, client) in store.pairs().await {
        let job = client.store_one(kept("job").max_attempts(attempts(1))).await;
        worker.take_one_briefly().await;
        let waiting = wait_for(store, &client, &job).await;
        store.outlast_brief_leases().await;

        worker.recover_all().await;

        let wanted = worker.result_of(&job).await;
        assert!(matches!(wanted, Some(JobResult::Dead { .. })), "R29: {wanted:?}");
        is_woken(store, waiting, wanted).await;
        worker.purge().await.expect("answered");
    }
}

case!(a_purge_ends_waits: R29 => Results);
/// A purge of the queue wakes the clients that wait for its jobs. Nothing is told of
/// these jobs.
async fn a_purge_ends_waits(store: &Store) {
    for (worker, client) in store.pairs().await {
        let jobs = client.store([kept("leased"), kept("ready")]).await;
        worker.take_one().await;
        let waiting = [begin(&client, &jobs[0]), begin(&client, &jobs[1])];
        store.settled().await;

        worker.purge().await.expect("answered");

        for one in waiting {
            is_woken(store, one, None).await;
        }
    }
}

case!(what_ends_no_job_ends_no_wait: R29 => Results);
/// Progress, attempts that fail or are given back, a redrive of another job and the ends
/// of other jobs do not end a wait.
async fn what_ends_no_job_ends_no_wait(store: &Store) {
    let (worker, client) = (store.actor("worker").await, store.actor("client").await);
    client.store_one(kept("other")).await;
    let other = worker.take_one().await;
    let job = client.store_one(kept("job")).await;
    let waiting = wait_for(store, &client, &job).await;

    for disposition in [Disposition::GiveBack, retry_now(), postpone(Duration::ZERO)] {
        let held = worker.take_one().await;
        worker.shows(&held, b"half").await;
        worker.ends(&held, disposition).await;
        worker.recover_all().await;
    }
    worker.ends(&other, dead("no")).await;
    worker.redrive(&Selection::All).await.expect("answered");
    for held in worker.take(2).await {
        if *held.job() == job {
            worker.shows(&held, b"more").await;
            worker.ends(&held, Disposition::GiveBack).await;
        } else {
            worker.ends(&held, done_with("of another")).await;
        }
    }
    store.settled().await;
    assert!(!waiting.is_finished(), "R29: the job has not ended");
    worker.ends(&worker.take_one().await, done_with("result")).await;

    is_woken(store, waiting, Some(done("result"))).await;
}

case!(many_waits_share_a_handle: R29 => Results);
/// Many calls wait on one handle, for one job and for many. Each is woken by the end of
/// its own job, and by no other.
async fn many_waits_share_a_handle(store: &Store) {
    let (worker, client) = (store.actor("worker").await, store.actor("client").await);
    client.store(numbered(6).into_iter().map(kept)).await;
    let held = worker.take(6).await;
    let mut waiting: Vec<Vec<Waiting>> = held
        .iter()
        .map(|one| (0..3).map(|_| begin(&client, one.job())).collect())
        .collect();
    store.settled().await;

    for (at, held) in held.iter().enumerate().rev() {
        let result = format!("result {at}");
        worker.ends(held, done_with(result.clone())).await;
        for one in waiting.pop().expect("as many as jobs") {
            is_woken(store, one, Some(done(result.clone()))).await;
        }
        let rest = waiting.iter().flatten();
        assert!(rest.into_iter().all(|one| !one.is_finished()), "R29: woken early");
    }
}

case!(ends_at_once_wake_each_waiter: R29 => Results);
/// A call that ends many jobs wakes all clients that wait for them, on several handles.
async fn ends_at_once_wake_each_waiter(store: &Store) {
    let worker = store.actor("worker").await;
    let clients = [store.actor("c1").await, store.actor("c2").await];
    worker.store(numbered(5).into_iter().map(kept)).await;
    let held = worker.take(5).await;
    let jobs = held.iter().map(Delivery::job);
    let waiting: Vec<_> = jobs
        .flat_map(|job| clients.iter().map(move |client| begin(client, job)))
        .collect();
    store.settled().await;

    crate::harness::checks::settle_all(&worker, &held, &done_with("result")).await;

    for one in waiting {
        is_woken(store, one, Some(done("result"))).await;
    }
}

case!(a_wait_ends_in_time: R29 R21 => Results);
/// If the job does not end, a wait ends after its time and tells what became of the job
/// so far.
async fn a_wait_ends_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let mut told_so_far = UNFINISHED;
    for wait in [Duration::ZERO, Duration::from_millis(300)] {
        let call = actor.results().wait_result(&job, wait);
        let (told, took) = store.within(wait + store.response_limit(), call).await;
        assert_eq!(told.expect("answered"), Some(told_so_far), "R29");
        assert!(took >= wait, "R29: a wait of {wait:?} took {took:?}");
        actor.release_worker(actor.worker()).await.expect("answered");
        actor.shows(&actor.take_one().await, b"half").await;
        told_so_far = reported("half");
    }

    let endless = actor.results().wait_result(&job, Duration::MAX).await;

    let error = endless.expect_err("it is refused");
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(error.at().operation, Operation::WaitResult, "{error:?}");
}

case!(a_wait_for_what_has_ended_returns_at_once: R29 => Results);
/// A wait for a job that has ended, that keeps no result or that is not known returns at
/// once.
async fn a_wait_for_what_has_ended_returns_at_once(store: &Store) {
    let actor = store.actor("worker").await;
    let ended = actor.store_one(kept("ended")).await;
    actor.ends(&actor.take_one().await, done_with("result")).await;
    let buried = actor.store_one(kept("dead")).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    let dead = actor.result_of(&buried).await;
    let plain = actor.store_one(NewJob::new("plain")).await;

    for (job, wanted) in [
        (ended, Some(done("result"))),
        (buried, dead),
        (plain, None),
        (id("unknown"), None),
    ] {
        let call = actor.results().wait_result(&job, WAIT);
        let (told, took) = store.within(store.response_limit(), call).await;

        assert_eq!(told.expect("answered"), wanted, "R29: job {job}");
        assert!(took < store.response_limit(), "R29: it took {took:?}");
    }
}

case!(a_wait_may_be_dropped: R29 R22 => Results);
/// A wait that is dropped, at its beginning or later, neither ends nor delays the waits
/// beside it and after it.
async fn a_wait_may_be_dropped(store: &Store) {
    let (worker, client) = (store.actor("worker").await, store.actor("client").await);
    let jobs = client.store([kept("one"), kept("two")]).await;
    let held = worker.take(2).await;
    for _ in 0..5 {
        let call = client.results().wait_result(&jobs[0], WAIT);
        tokio::select! {
            biased;
            _ = call => panic!("R29: the job has not ended"),
            () = tokio::task::yield_now() => {}
        }
    }
    let dropped = wait_for(store, &client, &jobs[0]).await;
    let other = wait_for(store, &client, &jobs[0]).await;
    dropped.abort();
    drop(dropped.await);
    store.settled().await;

    for held in &held {
        worker.ends(held, done_with("result")).await;
    }

    is_woken(store, other, Some(done("result"))).await;
    let next = client.store_one(kept("next")).await;
    let waiting = wait_for(store, &client, &next).await;
    worker.ends(&worker.take_one().await, done_with("next")).await;
    is_woken(store, waiting, Some(done("next"))).await;
}

case!(a_wait_beside_a_stalled_runtime_is_woken: R29 R22 => Results);
/// A call is woken although another runtime, which began to wait on the same handle, is
/// not run any more.
async fn a_wait_beside_a_stalled_runtime_is_woken(store: &Store) {
    let (worker, client) = (store.actor("worker").await, store.actor("client").await);
    let job = client.store_one(kept("job")).await;
    let held = worker.take_one().await;
    let stalled = thread::scope(|scope| {
        let begin = scope.spawn(|| wait_and_freeze(store, &client, &job));
        begin.join().expect("the call begins to wait")
    });
    let waiting = wait_for(store, &client, &job).await;
    assert!(!waiting.is_finished(), "R29: the job has not ended");

    worker.ends(&held, done_with("result")).await;

    is_woken(store, waiting, Some(done("result"))).await;
    stalled.shutdown_background();
}

/// Begins to wait for the end of a job on a runtime of its own, and then stops running
/// that runtime. Returns the runtime, so that the call is not dropped.
fn wait_and_freeze(store: &Store, actor: &Actor, job: &JobId) -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a runtime");
    runtime.block_on(wait_for(store, actor, job));
    runtime
}

case!(a_wait_begins_again_after_none: R29 => Results);
/// After the last wait of a handle has ended, and jobs ended without one, the next wait
/// is woken.
async fn a_wait_begins_again_after_none(store: &Store) {
    let (worker, client) = (store.actor("worker").await, store.actor("client").await);
    for number in 0..3 {
        client.store([kept("unheard"), kept("heard")]).await;
        let held = worker.take(2).await;
        worker.ends(&held[0], done_with("unheard")).await;
        let waiting = wait_for(store, &client, held[1].job()).await;
        assert!(!waiting.is_finished(), "R29: the job has not ended");

        let result = format!("result {number}");
        worker.ends(&held[1], done_with(result.clone())).await;

        is_woken(store, waiting, Some(done(result))).await;
    }
}
