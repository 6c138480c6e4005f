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
//! let mut page = relq::redis::queues(url, None).await?;
//! loop {
//!     for queue in &page.queues {
//!         println!("{}: {:?}", queue.name, queue.marker);
//!     }
//!     let Some(next) = page.next else { break };
//!     page = relq::redis::queues(url, Some(&next)).await?;
//! }
//! # Ok(())
//! # }
//! ```

use relq_core::{QueueName, operator::PageCursor};
#[doc(inline)]
pub use relq_redis::{
    ClockDifference, MarkedQueue, Marker, QueuesPage, Seen, ServerCheck, ServerProgram,
};

use crate::{ConnectError, connect};

/// Reports the marker and the keys of the queue at `url`, whichever backend `url`
/// names. Nothing is written.
///
/// # Errors
/// The errors of [`connect`](crate::connect()), except that it is not an error if
/// another backend owns the queue.
pub async fn see(url: &str, queue: &QueueName) -> Result<Seen, ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::see(config, &owner).await?)
}

/// Marks the queue for the backend that `url` names, and replaces any other marker. A
/// marker that is already right does not change. If only the number of parts changes
/// (`?partitions=3`), workers may run.
///
/// # Errors
/// [`Error::Unusable`](relq_core::Error::Unusable) when leases or heartbeats of workers
/// have not expired, when a part that is to be dropped has jobs or batches, when the number
/// of parts of a paused queue is to change, when a queue with schedules is to get several
/// parts, when the queue has keys that the backend does not know, or when a newer relq
/// wrote it; and the errors of [`connect`](crate::connect()).
pub async fn mark(url: &str, queue: &QueueName) -> Result<(), ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    let seen = relq_redis::see(config.clone(), &owner).await?;
    connect::check_changed_parts(url, queue, &seen).await?;
    Ok(relq_redis::mark(config, &owner).await?)
}

/// Removes the marker of an empty queue, which was purged or never used. Returns
/// whether the queue now has no marker. A queue that has other keys, or that another
/// backend owns, keeps its marker. The parts of the queue lose their markers in the same
/// way.
///
/// # Errors
/// The errors of [`connect`](crate::connect()).
pub async fn unmark(url: &str, queue: &QueueName) -> Result<bool, ConnectError> {
    for (config, owner) in connect::owners_of_parts(url, queue)? {
        relq_redis::unmark(config, &owner).await?;
    }
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::unmark(config, &owner).await?)
}

/// Returns one page of the markers in the database or the cluster at `url`, of all
/// backends, also if `url` opens one part of a queue. The first page has no cursor. A queue
/// whose marker exists during the whole listing is on at least one page, and may be on several;
/// in a cluster a queue whose slot moves meanwhile may be missing, and the listing cannot go
/// on behind a master that cannot be reached. [`store::queues`](crate::store::queues) lists
/// the queues of any store.
///
/// # Errors
/// The errors of [`connect`](crate::connect()), and
/// [`Error::Invalid`](relq_core::Error::Invalid) for a cursor of another listing.
pub async fn queues(
    url: &str,
    after: Option<&PageCursor>,
) -> Result<QueuesPage, ConnectError> {
    let (config, _) = connect::owner(&connect::without_part(url), &any_queue())?;
    Ok(relq_redis::marked_queues(config, after).await?)
}

/// Reads the properties of the queue's server that do not stop relq, but that an operator
/// should know: its program and version, whether it keeps an append-only file, and by how
/// much its clock differs from that of this machine. A worker may log it at its start, as
/// `relq work` does. Nothing is written.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let emails = relq::QueueName::new("emails")?;
/// let found = relq::redis::check_server("redis://localhost", &emails).await?;
/// if found.has_append_only_file == Some(false) {
///     eprintln!("a crash of the server loses jobs");
/// }
/// if let Some(difference) = found.clock_difference {
///     eprintln!("the clocks differ by {:?}", difference.length());
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`connect`](crate::connect()).
pub async fn check_server(
    url: &str,
    queue: &QueueName,
) -> Result<ServerCheck, ConnectError> {
    let (config, owner) = connect::owner(url, queue)?;
    Ok(relq_redis::check_server(config, &owner).await?)
}

/// A placeholder name, because the address of the server does not depend on the queue.
fn any_queue() -> QueueName {
    QueueName::new("any").expect("the name is valid")
}
