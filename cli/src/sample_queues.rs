//! Queues in memory for the tests of calls: a healthy one, and one with overrides.

use std::sync::Arc;

use relq::{Queue, QueueName, environment::Environment};
use relq_conformance::overrides::{OverriddenQueue, Override, Right};

/// An empty queue whose backend has all options.
pub(crate) async fn healthy_queue() -> Arc<dyn Queue> {
    let name = QueueName::new("q").expect("it is a name");
    relq::connect("sqlite::memory:", &name).await.expect("it needs no file")
}

/// A healthy queue, of which the overrides replace some calls.
pub(crate) async fn overridden_queue(overrides: Arc<dyn Override>) -> Arc<dyn Queue> {
    let right =
        Right { queue: healthy_queue().await, environment: Environment::default() };
    Arc::new(OverriddenQueue::new(right, overrides))
}
