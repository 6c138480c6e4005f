//! How a waiting claim wakes: by two kinds of notifications, and by a regular recheck.
//!
//! ```text
//! arrivals  XREADGROUP … ready … STREAMS Q >   returns after any client's XADD
//! signals   BLPOP {Q}:wake                     returns when a job of another priority
//!                                              or a returned job is ready, or claims
//!                                              resume
//! ```
//!
//! The notifier that wakes first reads the new entry for the consumer `ready`, and any
//! claim of any worker takes entries of `ready` first. So one push wakes one worker. If
//! the waiter dies after the read, the job is still ready. If all other workers sleep
//! at that moment, the first recheck finds the job.

use std::time::Duration;

use relq_redis::{Cmd, command};

use crate::keys::{GROUP, Keys, READY};

/// The longest time that a waiting claim sleeps before it tries again without a
/// notification. It limits the delay if a waiter dies after it took a notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// Builds the blocking command that returns when an entry of normal priority is added.
pub(crate) fn arrivals(keys: &Keys, block: Duration) -> Cmd {
    let mut cmd = command("XREADGROUP");
    cmd.arg("GROUP").arg(GROUP).arg(READY).arg("COUNT").arg(1);
    cmd.arg("BLOCK").arg(block.as_millis().to_string());
    cmd.arg("STREAMS").arg(&keys.normal).arg(">");
    cmd
}
