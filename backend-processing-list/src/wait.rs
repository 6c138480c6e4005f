//! How an idle claim waits: a move into its worker's list, and a notifier.
//!
//! ```text
//!  per worker  BLMOVE Q {Q}:w:SESSION RIGHT LEFT   any client's LPUSH, at once
//!  shared      BLMOVE Q {Q}:handed RIGHT LEFT      the same
//!              EVALSHA claim … moved               right behind it
//!  signals     BLPOP {Q}:wake                      what is not pushed onto Q: an
//!                                                  earlier due time, resume
//! ```
//!
//! The server holds the move; the claim script that was sent behind it runs in the
//! moment in which the move is answered. It stamps what came, or puts it back when the
//! queue is paused by then. So a job reaches an idle worker in one hop, and no handler
//! ever sees a job without a stamp.
//!
//! A claim whose time is over has the server let go of the move, and takes what came in
//! the same moment. One that is dropped does so too, and what came goes back uncounted.
//! One that dies leaves the move to the server, which forgets it with the connection;
//! one that freezes leaves a job in a list that is watched.

use std::{sync::Arc, time::Duration};

use relq_core::{Error, Operation};
use relq_redis::{Notifier, bookkeeping::WaitHint, command};

use crate::{
    moves::{BLOCK, Move, Movers},
    scripts::{Asked, Claimed, Store},
    session::Site,
};

/// How long a waiting claim sleeps at most before it looks again, whatever comes. It
/// bounds what a waiter's death at the wrong instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// What the claims of one opened queue wait by.
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

    /// Waits until there may be something to claim, or `limit` is over; answers what a
    /// move has brought. The move goes on from one wait of a claim to the next.
    pub(crate) async fn wait(
        &self,
        moving: &mut Option<Move>,
        asked: &Asked,
        hint: WaitHint,
        limit: Duration,
    ) -> Option<Claimed> {
        // While the queue is paused, what is pushed is no reason to look.
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

/// The worker is known at the store until its lease from the last look is over, so it
/// looks again in time.
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

/// Notifies another worker, because nobody heard this one.
async fn pass_on(store: Store) -> Result<(), Error> {
    let mut cmd = command("LPUSH");
    cmd.arg(&store.keys.bookkeeping.wake).arg(1);
    store.conn.call(Operation::Claim, &cmd).await.map(drop)
}
