//! What is special to queues on Redis: the markers that say which backend owns a queue
//! (R25).
//!
//! A queue is marked with its first write. Nobody has to call anything here, but to find
//! out which queues a server has, and to mark those whose keys are older than markers.
//!
//! ```no_run
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "redis://localhost";
//! let mut cursor = Some(0);
//! while let Some(from) = cursor {
//!     let page = relq::redis::queues(url, from).await?;
//!     for queue in page.queues {
//!         println!("{}: {}", queue.name, queue.url.unwrap_or_default());
//!     }
//!     cursor = page.next;
//! }
//! # Ok(())
//! # }
//! ```

use relq_core::QueueName;
#[doc(inline)]
pub use relq_redis::{MarkedQueue, Marker, QueuesPage, Seen};

use crate::{ConnectError, connect};

/// Says what there is of the queue at `url`, whichever backend `url` names. Nothing is
/// written.
///
/// # Errors
/// As [`connect`](crate::connect()); never because the queue is another backend's.
pub async fn see(url: &str, queue: &QueueName) -> Result<Seen, ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::see(config, &owner).await?)
}

/// Marks the queue as one of the backend that `url` names, whatever its marker was. A
/// marker that is right already is left as it is.
///
/// # Errors
/// [`Error::Unusable`](relq_core::Error::Unusable) when leases or heartbeats of workers
/// run, when the queue has keys that the backend does not know, or when a newer relq
/// wrote it; and as [`connect`](crate::connect()).
pub async fn mark(url: &str, queue: &QueueName) -> Result<(), ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::mark(config, &owner).await?)
}

/// A page of the queues in the database at `url`, of all backends. The first page is the
/// one from 0 on. A queue that has a marker all the time is on one page at least, and may
/// be on more.
///
/// # Errors
/// As [`connect`](crate::connect()).
pub async fn queues(url: &str, cursor: u64) -> Result<QueuesPage, ConnectError> {
    let (config, _) = connect::owner(url, &any_queue())?;
    Ok(relq_redis::marked_queues(config, cursor).await?)
}

/// Where the server is does not depend on the queue.
fn any_queue() -> QueueName {
    QueueName::new("any").expect("the name is valid")
}
