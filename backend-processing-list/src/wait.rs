//! How an idle claim waits: a move into its worker's list, and a notifier.
//!
//! ```text
//! per worker  BLMOVE Q {Q}:w:SESSION RIGHT LEFT   returns after any client's LPUSH
//! shared      BLMOVE Q {Q}:handed RIGHT LEFT      returns after any client's LPUSH
//!             EVALSHA claim … moved               sent with the BLMOVE, right after it
//! signals     BLPOP {Q}:wake                      returns when a job is due earlier, or
//!                                                 claims resume
//! arrivals    BLMOVE Q Q RIGHT RIGHT              returns after any client's LPUSH, and
//!                                                 takes nothing
//! ```
//!
//! Only a caller that waits without a claim (`wait_for_jobs`) listens for arrivals.
//!
//! The server holds the move. The claim script is sent after it on the same connection,
//! so it runs as soon as the move returns. The script stamps the moved job, or puts it
//! back if the queue is paused by then. So a job reaches an idle worker in one round
//! trip, and no handler ever sees a job without a stamp.
//!
//! A claim that times out asks the server to release the move, and takes a job that the
//! move brings at that moment. A dropped claim does the same, and the job goes back
//! uncounted. If the process dies, the server drops the move with the connection. If
//! the process freezes, the move may leave a job in the worker's list, and recovery
//! watches this list.

use std::{sync::Arc, time::Duration};

use relq_core::{Error, error::Operation};
use relq_redis::{
    Notifier,
    bookkeeping::{LastHint, WaitHint},
    command,
};

use crate::{
    capabilities::RECHECK,
    moves::{BLOCK, Move, Movers},
    scripts::{Asked, Claimed, Store},
    session::Site,
};

/// The notifier and the blocking moves that wake the waiting claims of one opened
/// queue.
#[derive(Debug)]
pub(crate) struct WaitingPattern {
    signals: Notifier,
    arrivals: Notifier,
    pub(crate) movers: Arc<Movers>,
    pub(crate) last: LastHint<WaitHint>,
}

impl WaitingPattern {
    pub(crate) fn new(store: &Store) -> Self {
        let mut cmd = command("BLPOP");
        cmd.arg(&store.keys.bookkeeping.wake).arg(BLOCK.as_secs());
        let pass_on = {
            let store = store.clone();
            move || pass_on(store.clone())
        };
        Self {
            signals: Notifier::new("signals", store.conn.clone(), cmd, BLOCK, pass_on),
            arrivals: arrivals(store),
            movers: Arc::new(Movers::new(store.clone())),
            last: LastHint::default(),
        }
    }

    /// Waits until a job may be ready, or until `limit` has passed. Takes no job.
    pub(crate) async fn wait_for_jobs(&self, limit: Duration) {
        let hint = self.last.begin_wait(|hint| hint.is_paused);
        let hint = hint.unwrap_or(WaitHint { is_paused: false, due_in: None });
        let limit = limit.min(hint.due_in.unwrap_or(RECHECK)).min(RECHECK);
        let pause = self.movers.sleep(limit);
        let arrival = (!hint.is_paused).then(|| self.arrivals.listen());
        let signal = self.signals.listen();
        tokio::select! {
            () = async { match arrival {
                Some(arrival) => arrival.notified().await,
                None => std::future::pending().await,
            } } => {}
            () = signal.notified() => {}
            () = pause => {}
        }
    }

    /// Waits until a job may be ready, or until `limit` has passed. Returns the job if
    /// the blocking move has brought one. A move that has brought none stays in
    /// `moving` for the claim's next wait.
    pub(crate) async fn wait(
        &self,
        moving: &mut Option<Move>,
        asked: &Asked,
        hint: WaitHint,
        limit: Duration,
    ) -> Option<Claimed> {
        // While the queue is paused, a push must not wake the claim, so it has no move.
        if hint.is_paused {
            *moving = None;
        } else if moving.is_none() {
            *moving = Some(Movers::begin(&self.movers, asked.clone()));
        }
        let limit = limit.min(hint.due_in.unwrap_or(RECHECK)).min(longest_sleep(asked));
        let pause = self.movers.sleep(limit);
        let signal = self.signals.listen();
        tokio::select! {
            claimed = arrival(moving) => {
                *moving = None;
                claimed
            }
            () = signal.notified() => None,
            () = pause => None,
        }
    }
}

/// Creates the notifier of pushes. Its command puts the oldest job back to where it was,
/// so a notification that no caller receives need not be passed on.
fn arrivals(store: &Store) -> Notifier {
    let mut cmd = command("BLMOVE");
    cmd.arg(&store.keys.ready).arg(&store.keys.ready).arg("RIGHT").arg("RIGHT");
    cmd.arg(BLOCK.as_secs());
    let pass_on = || std::future::ready(Ok(()));
    Notifier::new("arrivals", store.conn.clone(), cmd, BLOCK, pass_on)
}

/// Stores a signal that wakes another waiting claim. If that fails, the claim looks
/// again after its longest sleep.
pub(crate) async fn wake_another(store: &Store) {
    if let Err(error) = pass_on(store.clone()).await {
        tracing::debug!(%error, "a resume was not passed on");
    }
}

/// The longest sleep before the claim looks for jobs again. A look registers its worker
/// for the length of a lease, so the next look must come before that has passed.
fn longest_sleep(asked: &Asked) -> Duration {
    match asked.site {
        Site::Own(_) => RECHECK.min((asked.lease / 3).max(Duration::from_millis(1))),
        Site::Shared => RECHECK,
    }
}

async fn arrival(moving: &mut Option<Move>) -> Option<Claimed> {
    match moving {
        Some(moving) => moving.arrival().await,
        None => std::future::pending().await,
    }
}

/// Stores the wake-up signal again, so that a notifier of another process receives it:
/// this process has no waiting claim.
async fn pass_on(store: Store) -> Result<(), Error> {
    let mut cmd = command("LPUSH");
    cmd.arg(&store.keys.bookkeeping.wake).arg(1);
    store.conn.call(Operation::Claim, &cmd).await.map(drop)
}
