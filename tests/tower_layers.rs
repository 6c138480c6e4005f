//! Runs the code of the example `tower_layers`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/tower_layers.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::time::Duration;

use relq::{QueueName, worker::Worker};

#[tokio::test]
async fn every_job_is_done_and_the_slow_one_is_retried() {
    let name = QueueName::new("emails").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    example::push_some(&*queue).await.unwrap();

    let summary = Worker::new(queue.clone())
        .run_until_empty(queue, Duration::MAX, example::with_layers(example::send))
        .await
        .unwrap();

    assert_eq!((summary.done, summary.retried, summary.dead), (3, 1, 0));
}
