//! The queues that a demo creates: how often it reads their statistics, and how it
//! removes them at the end.

use std::time::Duration;

use relq::{Queue, QueueName};

use crate::failure::CommandResult;
#[cfg(feature = "redis")]
use crate::failure::Failure;

/// The pause between two reads of the queue's statistics.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Purges a queue that the demo created. On Redis, also removes the queue's marker,
/// which a purge keeps.
pub(super) async fn remove(
    url: &str,
    queue: &dyn Queue,
    name: &QueueName,
) -> CommandResult {
    queue.purge().await?;
    #[cfg(feature = "redis")]
    if !url.starts_with("sqlite:") && !relq::redis::unmark(url, name).await? {
        return Err(Failure::Failed(format!("the queue {name} is not empty")));
    }
    #[cfg(not(feature = "redis"))]
    let _ = (url, name);
    Ok(())
}
