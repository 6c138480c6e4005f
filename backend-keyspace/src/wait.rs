//! How an idle claim waits: a notifier and a recheck.
//!
//! ```text
//!  BLPOP {Q}:wake    a push, what comes back, an earlier due time, resume
//!  recheck           what some other client set by itself
//! ```
//!
//! Whoever makes a job ready leaves a token in the list, at most one. It wakes one
//! worker; a claim that leaves other jobs behind notifies again, so a push of ten jobs
//! wakes ten. A token waits for who is about to listen, so that no wake-up falls
//! between a claim that found nothing and its going to sleep.
//!
//! A message of PUBLISH would do none of that: it wakes every worker for one job, and
//! is lost on who is not listening just then. It also knows no databases, so that a
//! channel would have to name the database's number; a list is in its database.
//!
//! A bare `SET item_123 value` notifies nobody, and is found by the recheck. Who cannot
//! wait so long sends `LPUSH {Q}:wake 1` behind it.

use std::time::Duration;

use relq_core::Error;
use relq_redis::{Notifier, bookkeeping::WaitHint, command};

use crate::scripts::Store;

/// How long the server holds a blocking command. Never zero, which would be for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// How long a waiting claim sleeps at most before it looks again, whatever the notifier
/// says. It bounds how late a bare SET is found, and what a waiter's death at the wrong
/// instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// The notifier of one queue.
#[derive(Debug)]
pub(crate) struct Notifiers {
    signals: Notifier,
    store: Store,
}

/// Why a wait was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Woken {
    ByNotification,
    ByTime,
}

impl Notifiers {
    pub(crate) fn new(store: &Store) -> Self {
        let mut cmd = command("BLPOP");
        cmd.arg(&store.keys.bookkeeping.wake).arg(BLOCK.as_secs());
        let to_notify = store.clone();
        let pass_on = move || pass_on(to_notify.clone());
        let signals = Notifier::new("signals", store.conn.clone(), cmd, BLOCK, pass_on);
        Self { signals, store: store.clone() }
    }

    /// Waits until there may be something to claim, or `limit` is over.
    pub(crate) async fn wait(&self, hint: WaitHint, limit: Duration) -> Woken {
        let due_in = hint.due_in.filter(|_| !hint.is_paused);
        let limit = limit.min(due_in.unwrap_or(RECHECK)).min(RECHECK);
        let pause = self.store.conn.environment().clock().sleep(limit);
        let signal = self.signals.listen();
        tokio::select! {
            () = signal.notified() => Woken::ByNotification,
            () = pause => Woken::ByTime,
        }
    }
}

async fn pass_on(store: Store) -> Result<(), Error> {
    store.notify().await
}
