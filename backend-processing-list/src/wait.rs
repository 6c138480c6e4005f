//! How an idle claim waits: a move into its worker's list, and a doorbell.
//!
//! ```text
//!  per worker  BLMOVE Q {Q}:w:SESSION RIGHT LEFT   any client's LPUSH, at once
//!  shared      BLMOVE Q {Q}:handed RIGHT LEFT      the same
//!              EVALSHA claim … moved               right behind it
//!  signals     BLPOP {Q}:wake                      what is not pushed onto Q: an earlier
//!                                                  due time, resume
//! ```
//!
//! The server holds the move; the claim script that was sent behind it runs in the
//! moment in which the move is answered. It stamps what came, or puts it back when the
//! queue is paused by then. So a job reaches an idle worker in one hop, and no handler
//! ever sees a job without a stamp.
//!
//! A claim that gives up has the server let go of the move. What came in the same moment
//! goes back uncounted. One that dies leaves the move to the server, which forgets it
//! with the connection; one that freezes leaves a job in a list that is watched.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use queue_core::{Error, Operation};
use queue_redis::{Cmd, Doorbell, WaitingConn, command};
use tokio::sync::oneshot;

use crate::{
    scripts::{Asked, Claimed, Store},
    session::Site,
};

/// How long the server holds a blocking command. Never zero, which would be for ever.
const BLOCK: Duration = Duration::from_secs(5);

/// How long a waiting claim sleeps at most before it looks again, whatever comes. It
/// bounds what a waiter's death at the wrong instant can cost.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// The pause before a move is sent again that was refused, or whose connection was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// What an empty claim knows of the time to come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outlook {
    pub(crate) is_paused: bool,
    pub(crate) due_in: Option<Duration>,
}

/// What the claims of one opened queue wait by.
#[derive(Debug)]
pub(crate) struct Waits {
    signals: Doorbell,
    movers: Arc<Movers>,
}

/// What waiting moves share.
#[derive(Debug)]
struct Movers {
    store: Store,
    /// Connections on which nobody waits now.
    idle: Mutex<Vec<WaitingConn>>,
}

/// A move that waits for one claim. Dropped, it is called off.
#[derive(Debug)]
pub(crate) struct Move {
    arrived: oneshot::Receiver<Option<Claimed>>,
    movers: Arc<Movers>,
    _wanted: oneshot::Sender<()>,
}

impl Waits {
    pub(crate) fn new(store: &Store) -> Self {
        let mut signals = command("BLPOP");
        signals.arg(&store.keys.shelf.wake).arg(BLOCK.as_secs());
        let pass_on = {
            let store = store.clone();
            move || pass_on(store.clone())
        };
        Self {
            signals: Doorbell::new(
                "signals",
                store.conn.clone(),
                signals,
                BLOCK,
                pass_on,
            ),
            movers: Arc::new(Movers { store: store.clone(), idle: Mutex::default() }),
        }
    }

    /// Waits until there may be something to claim, or `limit` is over; answers what a
    /// move has brought. The move goes on from one wait of a claim to the next.
    pub(crate) async fn wait(
        &self,
        moving: &mut Option<Move>,
        asked: &Asked,
        outlook: Outlook,
        limit: Duration,
    ) -> Option<Claimed> {
        // While the queue is paused, what is pushed is no reason to look.
        if outlook.is_paused {
            *moving = None;
        } else if moving.is_none() {
            *moving = Some(Movers::begin(&self.movers, asked.clone()));
        }
        let limit = limit.min(outlook.due_in.unwrap_or(RECHECK)).min(patience(asked));
        let pause = self.movers.store.conn.environment().clock().sleep(limit);
        let signal = self.signals.listen();
        tokio::select! {
            claimed = arrival(moving) => {
                *moving = None;
                claimed
            }
            () = signal.rung() => None,
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
        // A task that ended without a word has nothing.
        Some(moving) => (&mut moving.arrived).await.ok().flatten(),
        None => std::future::pending().await,
    }
}

/// Lets another worker's bell ring, because nobody heard this one.
async fn pass_on(store: Store) -> Result<(), Error> {
    let mut cmd = command("LPUSH");
    cmd.arg(&store.keys.shelf.wake).arg(1);
    store.conn.call(Operation::Claim, &cmd).await.map(drop)
}

impl Drop for Move {
    /// What came while the claim turned away goes back.
    fn drop(&mut self) {
        if let Ok(Some(claimed)) = self.arrived.try_recv() {
            let movers = Arc::clone(&self.movers);
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { movers.give_back(claimed).await });
            }
        }
    }
}

impl Movers {
    /// Begins a move for one claim, on a task of its own: it has to end well although
    /// the claim may be dropped.
    fn begin(this: &Arc<Self>, asked: Asked) -> Move {
        let (arrive, arrived) = oneshot::channel();
        let (wanted, unwanted) = oneshot::channel();
        let movers = Arc::clone(this);
        tokio::spawn(async move {
            let claimed = movers.wait(&asked, unwanted).await;
            if let Err(Some(claimed)) = arrive.send(claimed) {
                movers.give_back(claimed).await;
            }
        });
        Move { arrived, movers: Arc::clone(this), _wanted: wanted }
    }

    /// Answers what a move has brought; nothing when the claim has to look by itself,
    /// or is gone.
    async fn wait(
        &self,
        asked: &Asked,
        mut unwanted: oneshot::Receiver<()>,
    ) -> Option<Claimed> {
        while is_wanted(&mut unwanted) {
            match self.wait_once(asked, &mut unwanted).await {
                Ok(Moved::Nothing) => {}
                Ok(Moved::Claimed(claimed)) => return Some(claimed),
                Ok(Moved::LookAgain) => return None,
                Err(error) => {
                    tracing::debug!(%error, "cannot wait for a move");
                    let clock = self.store.conn.environment().clock();
                    tokio::select! {
                        () = clock.sleep(PAUSE) => {}
                        _ = &mut unwanted => {}
                    }
                }
            }
        }
        None
    }

    async fn wait_once(
        &self,
        asked: &Asked,
        unwanted: &mut oneshot::Receiver<()>,
    ) -> Result<Moved, Error> {
        let idle = lock(&self.idle).pop();
        let mut conn = match idle {
            Some(conn) => conn,
            None => WaitingConn::open(&self.store.conn).await?,
        };
        let moved = self.wait_on(&mut conn, asked, unwanted).await;
        // A server without memory refuses moves; the connection is as good as before.
        if matches!(moved, Ok(_) | Err(Error::Full { .. })) {
            lock(&self.idle).push(conn);
        }
        moved
    }

    /// One move, and what the script behind it says.
    async fn wait_on(
        &self,
        conn: &mut WaitingConn,
        asked: &Asked,
        unwanted: &mut oneshot::Receiver<()>,
    ) -> Result<Moved, Error> {
        let (held, then) = (self.held(asked), self.store.claim_call(asked));
        let let_go = conn.let_go();
        let mut both = std::pin::pin!(conn.wait_then(&held, &then, BLOCK));
        let (moved, claimed) = tokio::select! {
            biased;
            answers = &mut both => answers?,
            _ = unwanted => {
                // If this fails, the move ends by itself when its time is over.
                let let_go = self.store.conn.call(Operation::Claim, &let_go).await;
                tracing::trace!(?let_go, "a claim gave up");
                both.await?
            }
        };
        match claimed.and_then(|claimed| self.store.claimed(claimed)) {
            Ok(claimed) if !claimed.elements.is_empty() => Ok(Moved::Claimed(claimed)),
            Ok(claimed) if moved.is_nil() && !claimed.is_paused => Ok(Moved::Nothing),
            Err(error) if moved.is_nil() => Err(error),
            Ok(_) | Err(_) => Ok(Moved::LookAgain),
        }
    }

    fn held(&self, asked: &Asked) -> Cmd {
        let keys = &self.store.keys;
        let to = match &asked.site {
            Site::Own(session) => keys.own_list(session),
            Site::Shared => keys.handed.clone(),
        };
        let mut held = command("BLMOVE");
        held.arg(&keys.ready).arg(to).arg("RIGHT").arg("LEFT").arg(BLOCK.as_secs());
        held
    }

    /// Puts back what came for nobody.
    async fn give_back(&self, claimed: Claimed) {
        let leases: Vec<Vec<u8>> =
            claimed.elements.iter().map(|one| one.to_vec()).collect();
        if leases.is_empty() {
            return;
        }
        if let Err(error) = self.store.give_back(Operation::Claim, &leases).await {
            tracing::debug!(%error, "what came for nobody waits for its lease");
        }
    }
}

/// What became of one move.
enum Moved {
    /// Its time was over.
    Nothing,
    /// What came is leased.
    Claimed(Claimed),
    /// What came is not leased, or was put back.
    LookAgain,
}

fn is_wanted(unwanted: &mut oneshot::Receiver<()>) -> bool {
    matches!(unwanted.try_recv(), Err(oneshot::error::TryRecvError::Empty))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
