//! What wakes an idle claim: two notifications, the next end of a lease or delay, and a
//! recheck.
//!
//! A ring is never empty while jobs are in process, so "block until it has something"
//! is no way to wait for it. The pattern's author names three ways not to poll. What
//! became of them here:
//!
//! * **A sentinel in the ring**, to notice that a whole turn found nothing: not
//!   needed. The ring's length says when a turn is whole, and the marks say
//!   beforehand whether there is anything to be found, so that an idle claim turns
//!   nothing.
//! * **A pause after fruitless calls**: kept as the recheck, which hears of a plain
//!   `LPUSH` beside jobs in process. A claim also knows when the next lease or delay
//!   ends, and sleeps until then.
//! * **A second list to block on**: built, as the list `wake` of at most one token.
//!   All that relq makes ready rings it in the same step, so no wake-up is lost
//!   between the two; a plain push is therefore a small script and no bare `LPUSH`. A
//!   transaction could not leave the token out where it lies already, and would let
//!   the list grow.
//!
//! ```text
//!  signals   BLPOP {Q}:wake                   whatever relq made ready, earlier due
//!                                             times, resume
//!  arrivals  BLMOVE Q Q RIGHT RIGHT           any client's LPUSH, at once, while the
//!                                             notification is empty; takes nothing
//! ```
//!
//! A token wakes one worker, which wakes the next if it leaves something to claim. The
//! arrivals wake every worker that waits, since each leaves the ring as it found it:
//! one push into an empty ring costs one claim of each idle connection. A waiter that
//! dies with the token on its hands has taken no job; the recheck of another finds
//! what it was to tell.

use std::time::Duration;

use relq_redis::{Cmd, command};

use crate::keys::Keys;

/// How long a waiting claim sleeps at most before it tries again, whatever notifications
/// say. So long may a plain `LPUSH` wait while jobs are in process, and so much can a
/// waiter's death at the wrong instant cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// The command that hears of a push into an empty ring.
pub(crate) fn arrivals(keys: &Keys, block: Duration) -> Cmd {
    let mut cmd = command("BLMOVE");
    cmd.arg(&keys.circle).arg(&keys.circle).arg("RIGHT").arg("RIGHT");
    cmd.arg(block.as_secs());
    cmd
}
