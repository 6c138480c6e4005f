//! The blocking move (`BLMOVE`) that waits for one claim, and how it is cancelled.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Error, error::Operation};
use relq_redis::{Cmd, Reply, WaitingConn, command};
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinHandle,
};

use crate::{
    scripts::{Asked, Claimed, Store},
    session::Site,
};

/// The timeout of a blocking command at the server. It must not be zero, because zero
/// means no timeout.
pub(crate) const BLOCK: Duration = Duration::from_secs(5);

/// The pause before the next blocking move after the server refused one, or after the
/// connection of one was lost.
const PAUSE: Duration = Duration::from_secs(1);

/// The pause between two requests to the server to release a blocking move. When the
/// first request arrives, the move itself may not have reached the server yet.
const AGAIN: Duration = Duration::from_millis(20);

/// The idle connections and the ending tasks that all blocking moves of one opened
/// queue share.
#[derive(Debug)]
pub(crate) struct Movers {
    store: Store,
    /// Connections that no blocking move uses now.
    idle: Mutex<Vec<WaitingConn>>,
    /// Tasks whose claim was dropped, and which still cancel its blocking move.
    ending: Mutex<Vec<JoinHandle<()>>>,
}

/// A blocking move that runs for one claim. Dropping it cancels the move.
#[derive(Debug)]
pub(crate) struct Move {
    arrived: oneshot::Receiver<Option<Claimed>>,
    wanted: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
    movers: Arc<Movers>,
}

/// The result of one blocking move and the claim script after it.
enum Moved {
    /// The move timed out, and no job was claimed.
    Nothing,
    /// The claim script leased at least one job.
    Claimed(Claimed),
    /// No job is leased, but the claim must look for jobs again: the script put the
    /// moved job back, or failed after the move, or the queue is paused.
    LookAgain,
}

impl Move {
    /// Waits until the move brings a job. Returns `None` if the claim must look for
    /// jobs itself.
    pub(crate) async fn arrival(&mut self) -> Option<Claimed> {
        // If the task ended without sending a result, the move has brought no job.
        (&mut self.arrived).await.ok().flatten()
    }

    /// Cancels the move. Returns a job if the move brings one before it ends.
    pub(crate) async fn end(mut self) -> Option<Claimed> {
        self.wanted = None;
        self.arrival().await
    }
}

impl Drop for Move {
    /// Cancels the move. If it still brings a job, the job goes back to the queue.
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

    /// Begins a blocking move for one claim. The move runs on a task of its own, so
    /// that it is cancelled at the server even if the claim is dropped.
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

    /// Waits until the blocking moves of all dropped claims are cancelled.
    pub(crate) async fn all_ended(&self) {
        let ending = std::mem::take(&mut *lock(&self.ending));
        for task in ending {
            if let Err(panic) = task.await {
                tracing::error!(%panic, "the task of a move failed");
            }
        }
    }

    /// Puts jobs that a move leased for a dropped claim back into the queue, uncounted.
    pub(crate) async fn give_back(&self, claimed: Claimed) {
        // The job that is put back last becomes the first in the queue, so the order is
        // reversed.
        let leases = claimed.elements.iter().rev().map(|element| element.to_vec());
        let leases: Vec<_> = leases.collect();
        let mut steps = self.store.bookkeeping.steps();
        while let Some(page) = steps.next_page(&leases, Vec::len) {
            let step = self.store.give_back(Operation::Claim, page).await;
            if let Err(error) = steps.add(page.len(), step) {
                tracing::debug!(%error, "cannot put a job back: its lease must expire");
                return;
            }
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
                    // `unwanted` has completed in this branch, and it must not be
                    // polled again.
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
        // After an error, the connection is not used again, except when the server only
        // refused the move for lack of memory.
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

    /// Sends a blocking move and the claim script on one connection, and waits for both
    /// replies. Asks the server to release the move as soon as the claim is dropped.
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
        match (moved, claimed.and_then(Claimed::read)) {
            // The script has leased these jobs also if the server refused the move.
            (_, Ok(claimed)) if !claimed.elements.is_empty() => {
                Ok(Moved::Claimed(claimed))
            }
            (Err(error), _) => Err(error),
            (Ok(moved), Ok(claimed)) if moved.is_nil() && !claimed.is_paused => {
                Ok(Moved::Nothing)
            }
            (Ok(moved), Err(error)) if moved.is_nil() => Err(error),
            (Ok(_), _) => Ok(Moved::LookAgain),
        }
    }

    /// Asks the server to release the blocking move, and repeats the request until the
    /// server holds the move and releases it. If a request fails, the move ends by its
    /// own timeout.
    async fn let_go(&self, let_go: &Cmd) {
        loop {
            let told = self.store.conn.call(Operation::Claim, let_go).await;
            match told.and_then(Reply::number) {
                Ok(0) => self.sleep(AGAIN).await,
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, "cannot release a move: it ends by its timeout");
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

/// Whether the claim still waits for the move: false once it has dropped its sender.
fn is_wanted(unwanted: &mut oneshot::Receiver<()>) -> bool {
    matches!(unwanted.try_recv(), Err(TryRecvError::Empty))
}
