//! How an idle claim wakes: by a notification and by a recheck.
//!
//! ```text
//! BLPOP {Q}:wake    returns after a push by relq, when a job returns or is due earlier,
//!                   or when claims resume
//! recheck           finds jobs that another client has set without a notification
//! ```
//!
//! Each script that makes a job ready leaves a token in the list, at most one. The
//! token wakes one worker. A claim that leaves other jobs behind notifies again, so a
//! push of ten jobs wakes ten workers. The token stays in the list until a worker
//! listens, so no wake-up is lost between a claim that finds nothing and the start of
//! its wait.
//!
//! A PUBLISH message has neither property: it wakes every worker for one job, and it is
//! lost for a worker that is not listening at that moment. Channels are also shared by
//! all databases, so a channel would have to carry the database's number in its name; a
//! list is in its database.
//!
//! A bare `SET item_123 value` notifies no worker, and the recheck finds the job. A
//! producer that cannot wait that long sends `LPUSH {Q}:wake 1` after it.

use std::time::Duration;

/// How long a waiting claim sleeps at most before it tries again, with or without a
/// notification. It bounds how late a bare SET is found, and the delay when a waiter
/// dies after it took a notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);
