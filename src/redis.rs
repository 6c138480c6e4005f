//! Calls for queues on Redis only: the markers that say which backend owns a queue
//! (R25).
//!
//! The first write of a queue marks it, so most applications need no call of this
//! module. The calls list the queues of a server, and mark queues whose keys are older
//! than markers.
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

/// Reports the marker and the keys of the queue at `url`, whichever backend `url`
/// names. Nothing is written.
///
/// # Errors
/// As [`connect`](crate::connect()), except that another owner of the queue is no
/// error.
pub async fn see(url: &str, queue: &QueueName) -> Result<Seen, ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::see(config, &owner).await?)
}

/// Marks the queue for the backend that `url` names, and replaces any other marker. A
/// marker that is already right does not change.
///
/// # Errors
/// [`Error::Unusable`](relq_core::Error::Unusable) when leases or heartbeats of workers
/// have not expired, when the queue has keys that the backend does not know, or when a
/// newer relq wrote it; and as [`connect`](crate::connect()).
pub async fn mark(url: &str, queue: &QueueName) -> Result<(), ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::mark(config, &owner).await?)
}

/// Removes the marker of an empty queue: one that was purged, or never used. Returns
/// whether the queue has no marker now. A queue with other keys, or one that another
/// backend owns, keeps its marker.
///
/// # Errors
/// As [`connect`](crate::connect()).
pub async fn unmark(url: &str, queue: &QueueName) -> Result<bool, ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::unmark(config, &owner).await?)
}

/// A page of the queues in the database at `url`, of all backends. The first page has
/// the cursor 0. A queue whose marker exists throughout is on at least one page, and
/// may be on several.
///
/// # Errors
/// As [`connect`](crate::connect()).
pub async fn queues(url: &str, cursor: u64) -> Result<QueuesPage, ConnectError> {
    let (config, _) = connect::owner(url, &any_queue())?;
    Ok(relq_redis::marked_queues(config, cursor).await?)
}

/// A placeholder name, because the address of the server does not depend on the queue.
fn any_queue() -> QueueName {
    QueueName::new("any").expect("the name is valid")
}
