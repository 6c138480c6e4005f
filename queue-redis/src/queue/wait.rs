//! How an idle claim waits: until a notification arrives, or until it is time to look
//! again (the recheck).
//!
//! ```text
//! arrivals  the pattern's own command       returns when any client made a job ready
//! signals   BLPOP {Q}:wake                  returns after other changes: a job is due
//!                                           earlier, or claims resume
//! recheck   after `Capabilities::lateness`  finds changes without a notification
//! ```
//!
//! If no job is scheduled and the queue is not paused, a recheck only counts the keys from
//! which a claim takes jobs, for patterns that can tell by them. This is one command, and a
//! claim is a script of several. So an idle worker costs the server little.
//!
//! A caller of [`wait_for_jobs`](relq_core::ReliableQueue::wait_for_jobs) has claimed
//! without a wait before. The queue keeps the conditions that this claim has found.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use redis::Cmd;
use relq_core::error::Operation;

use super::RedisQueue;
use crate::{
    Notifier, Reply,
    bookkeeping::{LastHint, WaitingPattern},
    command,
    pattern::{Notification, Pattern, WakeConditions},
};

/// How long the server holds a blocking command. It must not be zero, because Redis
/// then holds the command for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// The notifiers on which the waiting claims of one queue listen.
pub(super) struct Notifications<P> {
    arrivals: Option<Notifier>,
    signals: Notifier,
    pattern: Arc<P>,
    last: LastHint<WakeConditions>,
}

/// How often one wait counts keys before the caller claims. A server that was demoted, or on
/// which the user may no longer claim, still counts keys: only a claim is refused (R21).
const MOST_COUNTS: usize = 8;

/// The conditions of a caller that waits without having claimed.
const UNKNOWN: WakeConditions =
    WakeConditions { next_in: None, on_arrival: true, is_paused: false };

impl<P: Pattern> Notifications<P> {
    pub(super) fn new(pattern: &Arc<P>) -> Self {
        let mut signals = command("BLPOP");
        signals.arg(&pattern.bookkeeping().keys.wake).arg(BLOCK.as_secs());
        let arrivals = pattern.arrivals(BLOCK);
        Self {
            arrivals: arrivals.map(|cmd| notifier(pattern, Notification::Arrival, cmd)),
            signals: notifier(pattern, Notification::Signal, signals),
            pattern: Arc::clone(pattern),
            last: LastHint::default(),
        }
    }

    /// Waits under the conditions that the last claim without a wait has found.
    pub(super) async fn wait_as_last_claimed(&self, limit: Duration) {
        let wake = self.last.begin_wait(|wake| wake.is_paused);
        self.wait(wake.unwrap_or(UNKNOWN), limit).await;
    }

    /// Waits until jobs may be ready to claim, or until `limit` has passed. Returns whether
    /// a claim may find jobs now.
    async fn wait(&self, wake: WakeConditions, limit: Duration) -> bool {
        let arrivals = self.arrivals.as_ref().filter(|_| wake.on_arrival);
        let arrival = arrivals.map(Notifier::listen);
        let signal = self.signals.listen();
        tokio::select! {
            () = async { match arrival {
                Some(signal) => signal.notified().await,
                None => std::future::pending().await,
            } } => {}
            () = signal.notified() => {}
            may_find = self.look_again(&wake, limit) => return may_find,
        }
        self.pattern.on_notified();
        true
    }

    /// Waits until `limit` has passed or until it is time to claim again, even without a
    /// notification. Returns true if the caller should claim now, and false if the limit
    /// has passed and the keys have shown that a claim would find nothing.
    async fn look_again(&self, wake: &WakeConditions, limit: Duration) -> bool {
        let clock = self.pattern.bookkeeping().conn.environment().clock();
        let recheck = P::capabilities().lateness;
        let deadline = clock.elapsed().saturating_add(limit);
        let has_no_other_source =
            wake.on_arrival && wake.next_in.is_none() && !wake.is_paused;
        let sources =
            has_no_other_source.then(|| self.pattern.count_sources()).flatten();
        for _ in 0..MOST_COUNTS {
            let left = deadline.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return sources.is_none();
            }
            clock.sleep(left.min(wake.next_in.unwrap_or(recheck)).min(recheck)).await;
            match &sources {
                Some(cmd) if self.are_missing(cmd).await => {}
                _ => return true,
            }
        }
        true
    }

    /// Whether none of the keys exists that a command counts. False if the server does not
    /// answer: then the claim that follows says why.
    async fn are_missing(&self, sources: &Cmd) -> bool {
        let conn = &self.pattern.bookkeeping().conn;
        let counted = conn.call(Operation::Claim, sources).await;
        counted.and_then(Reply::number).is_ok_and(|count| count == 0)
    }
}

fn notifier<P: Pattern>(pattern: &Arc<P>, what: Notification, cmd: Cmd) -> Notifier {
    let name = match what {
        Notification::Arrival => "arrivals",
        Notification::Signal => "signals",
    };
    let (conn, pattern) = (pattern.bookkeeping().conn.clone(), Arc::clone(pattern));
    Notifier::new(name, conn, cmd, BLOCK, move || {
        let pattern = Arc::clone(&pattern);
        async move { pattern.pass_on(what).await }
    })
}

#[async_trait]
impl<P: Pattern> WaitingPattern for RedisQueue<P> {
    async fn wait(&self, wake: WakeConditions, limit: Duration) -> bool {
        self.notifications.wait(wake, limit).await
    }

    async fn keep_hint(&self, wake: WakeConditions) {
        if self.notifications.last.keep(wake, wake.is_paused) {
            self.wake_another().await;
        }
    }

    fn is_paused(wake: &WakeConditions) -> bool {
        wake.is_paused
    }

    async fn wake_another(&self) {
        if let Err(error) = self.pattern.pass_on(Notification::Signal).await {
            tracing::debug!(%error, "a resume was not passed on");
        }
    }
}

impl<P> fmt::Debug for Notifications<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifications").finish_non_exhaustive()
    }
}
