//! How an idle claim wakes: by two notifications and a recheck.
//!
//! ```text
//!  arrivals  XREADGROUP … ready … STREAMS Q >   any client's XADD, at once
//!  signals   BLPOP {Q}:wake                     jobs of other priorities,
//!                                               returned jobs, resume
//! ```
//!
//! The first notifier reads the new entry for the consumer `ready`, and any claim of
//! any worker takes entries of `ready` first. So one push wakes one worker, and if the
//! waiter dies after the read, the job is still ready. If all other workers sleep at
//! that moment, the first recheck finds it.

use std::time::Duration;

use relq_redis::{Cmd, command};

use crate::keys::{GROUP, Keys, READY};

/// How long a waiting claim sleeps at most before it tries again, with or without a
/// notification. It bounds the delay when a waiter dies after it took a notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// The blocking command that returns when an entry of normal priority is added.
pub(crate) fn arrivals(keys: &Keys, block: Duration) -> Cmd {
    let mut cmd = command("XREADGROUP");
    cmd.arg("GROUP").arg(GROUP).arg(READY).arg("COUNT").arg(1);
    cmd.arg("BLOCK").arg(block.as_millis().to_string());
    cmd.arg("STREAMS").arg(&keys.normal).arg(">");
    cmd
}
