//! How an idle claim wakes: by two notifications and a recheck.
//!
//! ```text
//! arrivals  BLMOVE Q {Q}:handed RIGHT LEFT   returns after any client's LPUSH
//! signals   BLPOP {Q}:wake                   returns when a job of another priority is
//!                                            ready or due earlier, or claims resume
//! ```
//!
//! `BLMOVE` moves the pushed job from one ready list to another, from which any claim
//! of any worker takes it first. So one push wakes one worker, and a waiter that dies
//! right after the move has removed nothing: the job is still ready. If all other
//! workers sleep at that moment, the first of their rechecks finds the job. A script that
//! puts a job to the front of `Q` first moves such jobs back, so that the order holds (R13).

use std::time::Duration;

use relq_redis::{Cmd, command};

use crate::keys::Keys;

/// How long a waiting claim sleeps at most before it tries again, with or without a
/// notification. It bounds the delay when a waiter dies after it took a notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// The maximum number of jobs that are moved from `handed` back to the ready list when
/// a notification finds no listener. Each waiter may have moved one job.
pub(crate) const PASS_ON: u32 = 1000;

/// Builds the blocking command that returns when a job is pushed.
pub(crate) fn arrivals(keys: &Keys, block: Duration) -> Cmd {
    let mut cmd = command("BLMOVE");
    cmd.arg(&keys.ready).arg(&keys.handed).arg("RIGHT").arg("LEFT");
    cmd.arg(block.as_secs());
    cmd
}

/// Builds the command that counts which of the keys exist that a claim reads. While none
/// exists, a claim finds nothing.
pub(crate) fn count_sources(keys: &Keys) -> Cmd {
    let Keys { bookkeeping, ready, handed, ranked, .. } = keys;
    let mut cmd = command("EXISTS");
    cmd.arg(ready)
        .arg(handed)
        .arg(ranked)
        .arg(&bookkeeping.later)
        .arg(&bookkeeping.paused);
    cmd
}
