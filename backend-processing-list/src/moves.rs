//! A blocking move for one claim, and its orderly end.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Error, Operation};
use relq_redis::{Cmd, Reply, WaitingConn, command};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinHandle,
};

use crate::{
    scripts::{Asked, Claimed, Store},
    session::Site,
};

/// How long the server holds a blocking command. Never zero, which would be for ever.
pub(crate) const BLOCK: Duration = Duration::from_secs(5);

/// The pause before a move is sent again that was refused, or whose connection was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause before the server is told again to let go of a move: it may not have got
/// the move by the first time.
const AGAIN: Duration = Duration::from_millis(20);

/// What the moves of one opened queue share.
#[derive(Debug)]
pub(crate) struct Movers {
    store: Store,
    /// Connections on which nobody waits now.
    idle: Mutex<Vec<WaitingConn>>,
    /// Moves that come to their end behind a claim that was dropped.
    ending: Mutex<Vec<JoinHandle<()>>>,
}

/// A move that waits for one claim. Dropped, it is called off.
#[derive(Debug)]
pub(crate) struct Move {
    arrived: oneshot::Receiver<Option<Claimed>>,
    wanted: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    movers: Arc<Movers>,
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

impl Move {
    /// Waits for what it brings; nothing when the claim has to look by itself.
    pub(crate) async fn arrival(&mut self) -> Option<Claimed> {
        // A task that ended without a word has nothing.
        (&mut self.arrived).await.ok().flatten()
    }

    /// Calls it off, and answers what came in the same moment.
    pub(crate) async fn end(mut self) -> Option<Claimed> {
        self.wanted = None;
        self.arrival().await
    }
}

impl Drop for Move {
    /// What came while the claim turned away goes back.
    fn drop(&mut self) {
        self.wanted = None;
        self.arrived.close();
        let mut ending = lock(&self.movers.ending);
        ending.retain(|task| !task.is_finished());
        ending.extend(self.task.take().filter(|task| !task.is_finished()));
        if let Ok(Some(claimed)) = self.arrived.try_recv()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let movers = Arc::clone(&self.movers);
            ending.push(runtime.spawn(async move { movers.give_back(claimed).await }));
        }
    }
}

impl Movers {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, idle: Mutex::default(), ending: Mutex::default() }
    }

    /// Begins a move for one claim, on a task of its own: it has to end well although
    /// the claim may be dropped.
    pub(crate) fn begin(this: &Arc<Self>, asked: Asked) -> Move {
        let (arrive, arrived) = oneshot::channel();
        let (wanted, unwanted) = oneshot::channel();
        let movers = Arc::clone(this);
        let task = tokio::spawn(async move {
            let claimed = movers.wait(&asked, unwanted).await;
            if let Err(Some(claimed)) = arrive.send(claimed) {
                movers.give_back(claimed).await;
            }
        });
        let movers = Arc::clone(this);
        Move { arrived, wanted: Some(wanted), task: Some(task), movers }
    }

    /// Completes when nothing is left of moves whose claims were dropped.
    pub(crate) async fn all_ended(&self) {
        let ending = std::mem::take(&mut *lock(&self.ending));
        for task in ending {
            if let Err(panic) = task.await {
                tracing::error!(%panic, "a move ended badly");
            }
        }
    }

    /// Puts back what came for nobody.
    pub(crate) async fn give_back(&self, claimed: Claimed) {
        let leases = claimed.elements.iter().map(|element| element.to_vec());
        let leases: Vec<_> = leases.collect();
        let given = self.store.give_back(Operation::Claim, &leases).await;
        if let Err(error) = given {
            tracing::debug!(%error, "what came for nobody waits for its lease");
        }
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.store.conn.environment().clock().sleep(duration).await;
    }

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
                    // Who was told once must not be asked again by polling.
                    if !is_wanted(&mut unwanted) {
                        return None;
                    }
                    tokio::select! {
                        () = self.sleep(PAUSE) => {}
                        _ = &mut unwanted => return None,
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
        let mut conn = match self.take_idle() {
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

    fn take_idle(&self) -> Option<WaitingConn> {
        let mut idle = lock(&self.idle);
        let at = idle.iter().position(WaitingConn::is_of_this_runtime)?;
        Some(idle.swap_remove(at))
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
        let answers = tokio::select! {
            biased;
            answers = &mut both => answers,
            _ = unwanted => tokio::select! {
                biased;
                answers = &mut both => answers,
                () = self.let_go(&let_go) => both.await,
            },
        };
        let (moved, claimed) = answers?;
        self.moved(moved.is_nil(), claimed)
    }

    fn moved(
        &self,
        is_over: bool,
        claimed: Result<Reply, Error>,
    ) -> Result<Moved, Error> {
        match claimed.and_then(|claimed| self.store.claimed(claimed)) {
            Ok(claimed) if !claimed.elements.is_empty() => Ok(Moved::Claimed(claimed)),
            Ok(claimed) if is_over && !claimed.is_paused => Ok(Moved::Nothing),
            Err(error) if is_over => Err(error),
            Ok(_) | Err(_) => Ok(Moved::LookAgain),
        }
    }

    /// Tells the server to let go of a move until it has one to let go. If it cannot be
    /// told, the move ends by itself when its time is over.
    async fn let_go(&self, let_go: &Cmd) {
        loop {
            let told = self.store.conn.call(Operation::Claim, let_go).await;
            match told.and_then(Reply::number) {
                Ok(0) => self.sleep(AGAIN).await,
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, "a move is left to its time");
                    return;
                }
            }
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
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether somebody still waits for what a move brings.
fn is_wanted(unwanted: &mut oneshot::Receiver<()>) -> bool {
    matches!(unwanted.try_recv(), Err(TryRecvError::Empty))
}
