//! Runs the code of the two examples to begin with, `quickstart` and `typed_jobs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/quickstart.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod quickstart;
#[path = "../examples/typed_jobs.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod typed_jobs;

use std::sync::Arc;

use relq::{Queue, QueueName};

async fn queue() -> Arc<dyn Queue> {
    relq::connect("sqlite::memory:", &QueueName::new("first").unwrap()).await.unwrap()
}

#[tokio::test]
async fn quickstart_does_all_jobs() {
    assert_eq!(quickstart::greet_all(queue().await).await.unwrap(), 3);
}

/// A busy server is retried, an address that is none and a payload that does not fit end
/// dead.
#[tokio::test]
async fn typed_jobs_end_as_the_example_says() {
    let queue = queue().await;
    typed_jobs::push_some(&*queue).await.unwrap();

    let summary = typed_jobs::run_all(&queue).await.unwrap();

    assert_eq!((summary.done, summary.retried, summary.dead), (1, 2, 2));
}
