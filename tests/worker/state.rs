//! Tests of the state that a worker reports.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    ReliableQueue,
    worker::{Failure, JobContext, Queues, Worker, WorkerError, WorkerState},
};
use tokio::sync::Notify;

use crate::{
    faulty::{Fault, Faulty},
    fixture::{Fixture, Running, eventually, worker_on},
    queues::{served, worker_on_several},
};

/// A worker on a store that fails all claims and recoveries while the flag is set.
fn worker_on_failing(fixture: &Fixture, fault: &Fault) -> (Worker, Arc<AtomicBool>) {
    let (store, is_down) = failing(fixture.queue.clone(), fault);
    (worker_on(Arc::new(store)), is_down)
}

/// A store that fails all claims and recoveries while the flag is set, as it is at first.
fn failing(queue: Arc<dyn ReliableQueue>, fault: &Fault) -> (Faulty, Arc<AtomicBool>) {
    let is_down = Arc::new(AtomicBool::new(true));
    let decide = || {
        let (is_down, fault) = (Arc::clone(&is_down), fault.clone());
        move |_, _| is_down.load(SeqCst).then(|| fault.clone())
    };
    (Faulty::new(queue).on_claim(decide()).on_recover(decide()), is_down)
}

/// A worker is ready only while its store answers.
pub(crate) async fn ready_while_the_store_answers(fixture: Fixture) {
    let (worker, is_down) = worker_on_failing(&fixture, &Fault::Unavailable);
    let progress = worker.progress();
    assert_eq!(progress.state(), WorkerState::Starting);
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    tokio::task::yield_now().await;
    assert_eq!(progress.state(), WorkerState::Starting);

    for _ in 0..2 {
        is_down.store(false, SeqCst);
        eventually(|| progress.state().is_ready()).await;
        is_down.store(true, SeqCst);
        eventually(|| progress.state() == WorkerState::Disconnected).await;
    }

    worker.stop().await;
    assert_eq!(progress.state(), WorkerState::Ended);
}

/// A worker on several queues is not ready while it has not reached the store of one of
/// them, although it runs the jobs of the others.
pub(crate) async fn starting_until_all_queues_are_reached(fixture: Fixture) {
    fixture.push("job").await;
    let second = fixture.open_another("second").await;
    let (second, is_down) = failing(second, &Fault::Unavailable);
    let queues = Queues::strict([
        served("first", fixture.queue.clone()),
        served("second", Arc::new(second)),
    ]);
    let worker = Running::start(worker_on_several(queues), async |_: JobContext| {
        Ok::<_, Failure>(())
    });

    worker.until(|summary| summary.done == 1).await;
    assert_eq!(worker.progress.state(), WorkerState::Starting);
    is_down.store(false, SeqCst);
    eventually(|| worker.progress.state() == WorkerState::Running).await;

    worker.stop().await;
}

/// A worker whose slots are all in use makes no claims. Then its recoveries tell whether the
/// store answers, and in a worker that waits for jobs its claims do.
pub(crate) async fn each_kind_of_call_tells_the_state(fixture: Fixture) {
    for is_busy in [false, true] {
        let is_down = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_down);
        let fails = move |_, _| flag.load(SeqCst).then(|| Fault::Unavailable);
        let store = Faulty::new(fixture.queue.clone());
        let store =
            if is_busy { store.on_recover(fails) } else { store.on_claim(fails) };
        let gate = Arc::new(Notify::new());
        let open = Arc::clone(&gate);
        let mut worker = worker_on(Arc::new(store)).concurrency(NonZeroU32::MIN);
        if is_busy {
            fixture.push("job").await;
        } else {
            worker = worker.reap_every(Duration::from_secs(3600));
        }
        let worker = Running::start(worker, move |_: JobContext| {
            let open = Arc::clone(&open);
            async move {
                open.notified().await;
                Ok::<_, Failure>(())
            }
        });
        worker.until_running(u64::from(is_busy)).await;
        eventually(|| worker.progress.state().is_ready()).await;

        is_down.store(true, SeqCst);
        eventually(|| worker.progress.state() == WorkerState::Disconnected).await;
        is_down.store(false, SeqCst);
        eventually(|| worker.progress.state().is_ready()).await;

        gate.notify_one();
        worker.stop().await;
    }
}

/// A worker that was asked to stop is not ready while its last handlers run.
pub(crate) async fn not_ready_while_it_stops(fixture: Fixture) {
    fixture.push("job").await;
    let gate = Arc::new(Notify::new());
    let open = Arc::clone(&gate);
    let worker = fixture.start(move |_: JobContext| {
        let open = Arc::clone(&open);
        async move {
            open.notified().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(1).await;
    assert_eq!(worker.progress.state(), WorkerState::Running);

    worker.ask_to_stop();
    eventually(|| worker.progress.state() == WorkerState::Stopping).await;

    gate.notify_one();
    assert_eq!(worker.stop().await.done, 1);
}

/// A worker whose future is dropped, or ends with an error, has ended.
pub(crate) async fn ended_however_it_ended(fixture: Fixture) {
    let worker = fixture.start(async |_: JobContext| Ok::<_, Failure>(()));
    let dropped = worker.progress.clone();
    eventually(|| dropped.state().is_ready()).await;
    worker.drop_future().await;
    assert_eq!(dropped.state(), WorkerState::Ended);

    let (worker, _) = worker_on_failing(&fixture, &Fault::WrongServer);
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    let failed = worker.progress.clone();
    assert!(matches!(
        worker.end().await,
        Err(WorkerError::Claim(_) | WorkerError::Store(_))
    ));
    assert_eq!(failed.state(), WorkerState::Ended);
}
