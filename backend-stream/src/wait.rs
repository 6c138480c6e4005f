//! How an idle claim waits: two doorbells and a recheck.
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

use queue_core::Error;
use queue_redis::{Doorbell, command, shelf::Outlook};

use crate::{
    keys::{GROUP, READY},
    scripts::Store,
};

/// How long the server holds a blocking command. Never zero, which would be for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// How long a waiting claim sleeps at most before it looks again, whatever the bells
/// say. It bounds what a waiter's death at the wrong instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// The doorbells of one queue.
#[derive(Debug)]
pub(crate) struct Bells {
    arrivals: Doorbell,
    signals: Doorbell,
    store: Store,
}

impl Bells {
    pub(crate) fn new(store: &Store) -> Self {
        let keys = &store.keys;
        let mut arrivals = command("XREADGROUP");
        arrivals.arg("GROUP").arg(GROUP).arg(READY).arg("COUNT").arg(1);
        arrivals.arg("BLOCK").arg(BLOCK.as_millis().to_string());
        arrivals.arg("STREAMS").arg(&keys.normal).arg(">");
        let mut signals = command("BLPOP");
        signals.arg(&keys.shelf.wake).arg(BLOCK.as_secs());
        let bell = |name, cmd| {
            let store = store.clone();
            let pass_on = move || pass_on(store.clone());
            (name, cmd, pass_on)
        };
        let hang = |(name, cmd, pass_on)| {
            Doorbell::new(name, store.conn.clone(), cmd, BLOCK, pass_on)
        };
        Self {
            arrivals: hang(bell("arrivals", arrivals)),
            signals: hang(bell("signals", signals)),
            store: store.clone(),
        }
    }

    /// Waits until there may be something to claim, or `limit` is over.
    pub(crate) async fn wait(&self, outlook: Outlook, limit: Duration) {
        let limit = limit.min(outlook.due_in.unwrap_or(RECHECK)).min(RECHECK);
        let pause = self.store.conn.environment().clock().sleep(limit);
        // While the queue is paused, what is pushed is no reason to look.
        let arrival = (!outlook.is_paused).then(|| self.arrivals.listen());
        let signal = self.signals.listen();
        tokio::select! {
            () = async { match arrival {
                Some(ring) => ring.rung().await,
                None => std::future::pending().await,
            } } => {}
            () = signal.rung() => {}
            () = pause => {}
        }
    }
}

async fn pass_on(store: Store) -> Result<(), Error> {
    store.pass_on().await
}
