//! How an idle claim waits: two notifiers and a recheck.
//!
//! ```text
//!  arrivals  XREADGROUP … ready … STREAMS Q >   any client's XADD, at once
//!  signals   BLPOP {Q}:wake                     what is not added to Q: other
//!                                               priorities, what came back, resume
//! ```
//!
//! The first reads the entry that it hears for the consumer `ready`, from which any
//! claim of any worker takes it first. So one push wakes one worker, and a waiter that
//! dies with the job on its hands has taken nothing: the job is ready still. If all
//! others sleep just then, the first recheck finds it.

use std::time::Duration;

use relq_core::Error;
use relq_redis::{Notifier, bookkeeping::WaitHint, command};

use crate::{
    keys::{GROUP, READY},
    scripts::Store,
};

/// How long the server holds a blocking command. Never zero, which would be for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// How long a waiting claim sleeps at most before it looks again, whatever the notifiers
/// say. It bounds what a waiter's death at the wrong instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// The notifiers of one queue.
#[derive(Debug)]
pub(crate) struct Notifiers {
    arrivals: Notifier,
    signals: Notifier,
    store: Store,
}

impl Notifiers {
    pub(crate) fn new(store: &Store) -> Self {
        let keys = &store.keys;
        let mut arrivals = command("XREADGROUP");
        arrivals.arg("GROUP").arg(GROUP).arg(READY).arg("COUNT").arg(1);
        arrivals.arg("BLOCK").arg(BLOCK.as_millis().to_string());
        arrivals.arg("STREAMS").arg(&keys.normal).arg(">");
        let mut signals = command("BLPOP");
        signals.arg(&keys.bookkeeping.wake).arg(BLOCK.as_secs());
        let notifier = |name, cmd| {
            let store = store.clone();
            let pass_on = move || pass_on(store.clone());
            (name, cmd, pass_on)
        };
        let hang = |(name, cmd, pass_on)| {
            Notifier::new(name, store.conn.clone(), cmd, BLOCK, pass_on)
        };
        Self {
            arrivals: hang(notifier("arrivals", arrivals)),
            signals: hang(notifier("signals", signals)),
            store: store.clone(),
        }
    }

    /// Waits until there may be something to claim, or `limit` is over.
    pub(crate) async fn wait(&self, hint: WaitHint, limit: Duration) {
        let limit = limit.min(hint.due_in.unwrap_or(RECHECK)).min(RECHECK);
        let pause = self.store.conn.environment().clock().sleep(limit);
        // While the queue is paused, what is pushed is no reason to look.
        let arrival = (!hint.is_paused).then(|| self.arrivals.listen());
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
