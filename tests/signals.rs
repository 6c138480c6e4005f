//! Tests a worker and a scheduler that handle SIGTERM and SIGINT. Signals go to the whole
//! process, so this test needs a test program of its own, and takes one after the other.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{process::Command, time::Duration};

use relq::{
    QueueName, ReliableQueueExt,
    schedule::Scheduler,
    worker::{Failure, JobContext, Queues, Worker, WorkerQueue},
};

const LONG: Duration = Duration::from_secs(3600);

fn send(signal: &str) {
    let pid = std::process::id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_end_a_worker_and_a_scheduler() {
    first_signal_stops_in_good_order_and_the_second_hard().await;
    signal_ends_a_worker_on_several_queues().await;
    each_signal_ends_a_scheduler().await;
}

/// R24: after the first signal the worker waits for its handler, and after the second
/// signal it gives the handler's job back.
async fn first_signal_stops_in_good_order_and_the_second_hard() {
    let name = QueueName::new("signals").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    queue.push_one("endless".into()).await.unwrap();
    let (begins, mut has_begun) = tokio::sync::mpsc::unbounded_channel();

    let worker = Worker::new(queue.clone()).lease(LONG).grace(LONG).handle_signals();
    let mut running = tokio::spawn(worker.run(move |_: JobContext| {
        begins.send(()).unwrap();
        std::future::pending::<Result<(), Failure>>()
    }));
    has_begun.recv().await.unwrap();

    send("-TERM");
    let pause = Duration::from_millis(300);
    assert!(tokio::time::timeout(pause, &mut running).await.is_err(), "it waits");
    assert_eq!(queue.stats().await.unwrap().leased, 1);

    send("-INT");
    let limit = Duration::from_secs(10);
    let summary = tokio::time::timeout(limit, running).await.unwrap().unwrap().unwrap();
    assert_eq!(summary.given_back, 1);
    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

/// R24: the parts of a worker that serve its queues hear a signal as a worker on one queue
/// does.
async fn signal_ends_a_worker_on_several_queues() {
    let mut queues = Vec::new();
    for name in ["first", "second"] {
        let name = QueueName::new(name).unwrap();
        let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
        queue.push_one("job".into()).await.unwrap();
        queues.push(WorkerQueue::new(name, queue));
    }
    let (begins, mut has_begun) = tokio::sync::mpsc::unbounded_channel();

    let worker = Worker::on(Queues::strict(queues)).lease(LONG).handle_signals();
    let running = tokio::spawn(worker.run(move |_: JobContext| {
        begins.send(()).unwrap();
        async { Ok::<_, Failure>(()) }
    }));
    for _ in 0..2 {
        has_begun.recv().await.unwrap();
    }

    send("-TERM");
    let limit = Duration::from_secs(10);
    let summary = tokio::time::timeout(limit, running).await.expect("it ends");
    assert_eq!(summary.unwrap().unwrap().done, 2);
}

/// A signal that comes before the scheduler listens ends nothing, because the process has
/// handled signals before. So it is sent until the scheduler has ended.
async fn each_signal_ends_a_scheduler() {
    let name = QueueName::new("signals").unwrap();
    for signal in ["-TERM", "-INT"] {
        let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
        let scheduler = Scheduler::new(queue).handle_signals();
        let mut running = tokio::spawn(scheduler.run());
        let ended = async {
            loop {
                send(signal);
                let again = tokio::time::sleep(Duration::from_millis(100));
                tokio::select! {
                    ended = &mut running => break ended,
                    () = again => {}
                }
            }
        };

        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;

        let ended = ended.unwrap_or_else(|_| panic!("{signal} ends the scheduler"));
        assert!(ended.unwrap().is_ok(), "{signal}");
    }
}
