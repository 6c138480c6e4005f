//! How an idle claim waits: a move into its worker's list, and a notifier.
//!
//! ```text
//!  per worker  BLMOVE Q {Q}:w:SESSION RIGHT LEFT   any client's LPUSH, at once
//!  shared      BLMOVE Q {Q}:handed RIGHT LEFT      the same
//!              EVALSHA claim … moved               right after it
//!  signals     BLPOP {Q}:wake                      all that is not pushed onto Q: an
//!                                                  earlier due time, resume
//! ```
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
use relq_redis::{Notifier, bookkeeping::WaitHint, command};

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
    pub(crate) movers: Arc<Movers>,
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
            movers: Arc::new(Movers::new(store.clone())),
        }
    }

    /// Waits until a job may be ready, or until `limit` has passed. Returns a job that
    /// the move has brought. The move continues from one wait of a claim to the next.
    pub(crate) async fn wait(
        &self,
        moving: &mut Option<Move>,
        asked: &Asked,
        hint: WaitHint,
        limit: Duration,
    ) -> Option<Claimed> {
        // While the queue is paused, a push is no reason to claim.
        if hint.is_paused {
            *moving = None;
        } else if moving.is_none() {
            *moving = Some(Movers::begin(&self.movers, asked.clone()));
        }
        let limit = limit.min(hint.due_in.unwrap_or(RECHECK)).min(patience(asked));
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

/// Leaves a signal for another waiting claim.
pub(crate) async fn wake_another(store: &Store) {
    if let Err(error) = pass_on(store.clone()).await {
        tracing::debug!(%error, "a resume was not passed on");
    }
}

/// The longest sleep between two looks. A worker's registration lasts as long as the
/// lease of its last look, so the worker must look again before it expires.
fn patience(asked: &Asked) -> Duration {
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

/// Stores the wake-up token, so that another notifier wakes: this one has no waiting
/// claim.
async fn pass_on(store: Store) -> Result<(), Error> {
    let mut cmd = command("LPUSH");
    cmd.arg(&store.keys.bookkeeping.wake).arg(1);
    store.conn.call(Operation::Claim, &cmd).await.map(drop)
}
