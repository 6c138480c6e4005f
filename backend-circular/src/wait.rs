//! How an idle claim wakes: by two notifications, at the end of the next lease or
//! delay, and by a recheck.
//!
//! A ring is never empty while jobs are in process, so a claim cannot wait by blocking
//! until the list has an element. The pattern's author names three ways to avoid
//! polling. This backend uses them as follows:
//!
//! * **A sentinel in the ring**, to notice that a whole turn found nothing: not needed.
//!   The ring's length says when a rotation is complete, and the marks say beforehand
//!   whether any job can be claimed, so an idle claim does not rotate the ring.
//! * **A pause after fruitless calls**: kept as the recheck, which finds a plain
//!   `LPUSH` while jobs are in process. A claim also knows when the next lease or delay
//!   ends, and sleeps until then.
//! * **A second list to block on**: built, as the list `wake` of at most one token.
//!   Each step of relq that makes a job ready also pushes the token, so no wake-up is
//!   lost between the two. A plain push is therefore a small script and not a bare
//!   `LPUSH`. A transaction could not skip the token when the list has one already, so
//!   the list would grow.
//!
//! ```text
//! signals   BLPOP {Q}:wake            returns when relq makes a job ready, when a job is
//!                                     due earlier, or when claims resume
//! arrivals  BLMOVE Q Q RIGHT RIGHT    returns after any client's LPUSH into an empty
//!                                     ring; moves the element onto its own place
//! ```
//!
//! A token wakes one worker, which wakes the next one if it leaves jobs to claim.
//! `arrivals` wakes every waiting worker, since its command does not change the ring:
//! one push into an empty ring causes one claim by each idle connection. A waiter that
//! dies, or whose queue is dropped, in the moment in which it receives the token has
//! not removed a job: another worker's recheck finds the job.

use std::time::Duration;

use relq_redis::{Cmd, command};

use crate::keys::Keys;

/// How long a waiting claim sleeps at most before it tries again, with or without a
/// notification. It bounds how late a plain `LPUSH` is found while jobs are in process,
/// and the delay when a waiter dies after it took a notification.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// Builds the blocking command that returns when a job is pushed into an empty ring.
pub(crate) fn arrivals(keys: &Keys, block: Duration) -> Cmd {
    let mut cmd = command("BLMOVE");
    cmd.arg(&keys.circle).arg(&keys.circle).arg("RIGHT").arg("RIGHT");
    cmd.arg(block.as_secs());
    cmd
}

/// Builds the command that counts which of the keys exist that a claim reads. While none
/// exists, a claim finds nothing.
pub(crate) fn count_sources(keys: &Keys) -> Cmd {
    let Keys { bookkeeping, circle, .. } = keys;
    let mut cmd = command("EXISTS");
    cmd.arg(circle).arg(&bookkeeping.later).arg(&bookkeeping.paused);
    cmd
}
