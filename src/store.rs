//! The queues of one store: a file, a server, or a cluster.
//!
//! ```
//! use relq::{ConnectError, operator::PageCursor, store::{self, StoreQueue}};
//!
//! /// Returns all queues of a store.
//! async fn all(url: &str) -> Result<Vec<StoreQueue>, ConnectError> {
//!     let (mut all, mut after) = (Vec::new(), None::<PageCursor>);
//!     loop {
//!         let page = store::queues(url, after.as_ref()).await?;
//!         all.extend(page.queues);
//!         after = page.next;
//!         if after.is_none() {
//!             return Ok(all);
//!         }
//!     }
//! }
//! ```

use std::sync::Arc;

use relq_core::{Queue, QueueName, operator::PageCursor};

use crate::{ConnectError, connect};

/// A queue of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreQueue {
    /// The name of the queue.
    pub name: QueueName,
    /// The backend that owns the queue; `None` if the queue's marker cannot be read.
    pub backend: Option<String>,
    /// The URL to open the queue with, as [`connect`](crate::connect()) takes it. A URL on
    /// Redis has no user and no password. `None` if the queue's marker cannot be read.
    pub url: Option<String>,
    /// The options of the URL that the queue's marker has.
    #[cfg(feature = "redis")]
    pub(crate) options: Vec<String>,
}

impl StoreQueue {
    #[cfg(any(feature = "redis", feature = "sqlite-unbundled"))]
    pub(crate) fn new(name: QueueName) -> Self {
        Self {
            name,
            backend: None,
            url: None,
            #[cfg(feature = "redis")]
            options: Vec::new(),
        }
    }
}

/// One page of the queues of a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreQueues {
    /// The queues of this page. A page may be empty although more pages follow.
    pub queues: Vec<StoreQueue>,
    /// The position where the next page begins; `None` when this is the last page.
    pub next: Option<PageCursor>,
}

/// Returns one page of the queues of the store at `url`. Nothing is written, and a file
/// that does not exist is not created. A file of an older relq is migrated, as when a queue
/// is opened.
///
/// * In a file, a queue is listed from the first call that opened it, in the order of the
///   names.
/// * On Redis, a queue is listed from its first write, which marks it (R25), whichever
///   backend of Redis `url` names. Only the database of the URL is searched, and in a
///   cluster all masters. The order is that of the server, a queue may be on several pages,
///   and in a cluster a queue whose slot moves meanwhile may be missing. The parts of a
///   queue of several parts are one queue.
///
/// # Errors
/// The errors of [`connect`](crate::connect()), also while one master of a cluster cannot be
/// reached: the queues of the masters after it are not listed then. [`Error::Unusable`] for a
/// file that does not exist, and [`Error::Invalid`] for a store in memory and for a cursor of
/// another listing.
///
/// [`Error::Unusable`]: relq_core::Error::Unusable
/// [`Error::Invalid`]: relq_core::Error::Invalid
pub async fn queues(
    url: &str,
    after: Option<&PageCursor>,
) -> Result<StoreQueues, ConnectError> {
    connect::queues(url, after).await
}

/// Opens a queue of a page that [`queues`] returned for `url`. The user, the password and the
/// options of the server are those of `url`, which the URL of the queue may lack. A file that
/// does not exist is not created.
///
/// # Errors
/// The errors of [`connect_existing`](crate::connect_existing).
pub async fn open(
    url: &str,
    queue: &StoreQueue,
) -> Result<Arc<dyn Queue>, ConnectError> {
    connect::open_listed(url, queue).await
}
