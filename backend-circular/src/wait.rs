//! How an idle claim waits: two notifiers, the next end of a lease or delay, and a
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

use relq_core::Error;
use relq_redis::{Notifier, command};

use crate::scripts::{Claimed, Found, Store};

/// How long the server holds a blocking command. Never zero, which would be for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// How long a waiting claim sleeps at most before it looks again, whatever the notifiers
/// say. So long may a plain `LPUSH` wait while jobs are in process, and so much can a
/// waiter's death at the wrong instant cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// The notifiers of one queue.
#[derive(Debug)]
pub(crate) struct Notifiers {
    arrivals: Notifier,
    signals: Notifier,
    store: Store,
}

/// What an empty claim knows of the time to come.
#[derive(Debug, Clone, Copy)]
pub struct WaitHint {
    found: Found,
    due_in: Option<Duration>,
    end_in: Option<Duration>,
}

impl WaitHint {
    pub(crate) fn of(claimed: &Claimed) -> Self {
        let Claimed { found, due_in, end_in, .. } = *claimed;
        Self { found, due_in, end_in }
    }

    /// Whether there are jobs to be promoted now.
    pub(crate) fn is_due(&self) -> bool {
        let is_now = self.due_in.is_some_and(|due_in| due_in.is_zero());
        is_now && self.found != Found::Paused
    }

    fn next_in(&self) -> Option<Duration> {
        if self.found == Found::Paused {
            return None;
        }
        self.due_in.into_iter().chain(self.end_in).min()
    }
}

impl Notifiers {
    pub(crate) fn new(store: &Store) -> Self {
        let keys = &store.keys;
        let mut arrivals = command("BLMOVE");
        arrivals.arg(&keys.circle).arg(&keys.circle).arg("RIGHT").arg("RIGHT");
        arrivals.arg(BLOCK.as_secs());
        let mut signals = command("BLPOP");
        signals.arg(&keys.bookkeeping.wake).arg(BLOCK.as_secs());
        let conn = || store.conn.clone();
        let passing = store.clone();
        Self {
            // Who does not hear it has kept it from nobody.
            arrivals: Notifier::new("arrivals", conn(), arrivals, BLOCK, || async {
                Ok(())
            }),
            signals: Notifier::new("signals", conn(), signals, BLOCK, move || {
                pass_on(passing.clone())
            }),
            store: store.clone(),
        }
    }

    /// Waits until there may be something to claim, or `limit` is over.
    pub(crate) async fn wait(&self, hint: WaitHint, limit: Duration) {
        let limit = limit.min(hint.next_in().unwrap_or(RECHECK)).min(RECHECK);
        let pause = self.store.conn.environment().clock().sleep(limit);
        let arrival = (hint.found == Found::Empty).then(|| self.arrivals.listen());
        let signal = self.signals.listen();
        tokio::select! {
            () = async { match arrival {
                Some(notification) => notification.notified().await,
                None => std::future::pending().await,
            } } => {}
            () = signal.notified() => {}
            () = pause => {}
        }
    }
}

async fn pass_on(store: Store) -> Result<(), Error> {
    store.pass_on().await
}
