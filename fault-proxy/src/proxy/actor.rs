//! The proxy's record of one actor: whether it lives, its connections, its steps.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

/// Whether an actor is alive, and whether the server sees its death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// Dead, with its connections closed at the server.
    Closed,
    /// Dead, but its connections stay open, so the server does not notice.
    Silent,
}

#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) name: String,
    life: watch::Sender<Life>,
    /// The number of connections that are not fully closed, including the server's
    /// side.
    open: watch::Sender<usize>,
    /// The number of the actor's blocking commands that the server holds.
    held: watch::Sender<usize>,
    connections: AtomicU32,
    steps: AtomicU32,
    replies: Mutex<Replies>,
}

/// A digest of all replies that an actor was sent.
#[derive(Debug, Default)]
struct Replies {
    /// The digest of all replies before the last call of [`Actor::replies`].
    closed: u64,
    /// The digest of the replies since then, for each connection.
    current: BTreeMap<u32, u64>,
}

impl Actor {
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            life: watch::Sender::new(Life::Alive),
            open: watch::Sender::new(0),
            held: watch::Sender::new(0),
            connections: AtomicU32::new(0),
            steps: AtomicU32::new(0),
            replies: Mutex::default(),
        }
    }

    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Kills the actor, or revives it.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.send_replace(life);
    }

    /// Completes once the actor is dead and all of its connections are closed.
    pub(crate) async fn gone(&self) {
        let mut life = self.life.subscribe();
        // The channels stay open, because their senders live as long as the actor.
        let _ = life.wait_for(|life| *life != Life::Alive).await;
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Completes once the server holds a blocking command of this actor.
    pub(crate) async fn held(&self) {
        let _ = self.held.subscribe().wait_for(|held| *held > 0).await;
    }

    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_step(&self) -> u32 {
        self.steps.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn steps(&self) -> u32 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Adds a reply on a connection to the digest of what the actor was sent (FNV-1a).
    pub(crate) fn is_sent(&self, connection: u32, bytes: &[u8]) {
        const PRIME: u64 = 0x0100_0000_01b3;
        let mut replies = self.lock_replies();
        let digest = replies.current.entry(connection).or_default();
        for byte in bytes {
            *digest = (*digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
    }

    /// Returns a digest of all replies. The replies since the previous call count as
    /// sent at the moment `now`. Among these, only the order on each connection counts,
    /// because replies on two connections arrive at the client in any order.
    pub(crate) fn replies(&self, now: Duration) -> u64 {
        let mut replies = self.lock_replies();
        let mut current: Vec<u64> =
            std::mem::take(&mut replies.current).into_values().collect();
        current.sort_unstable();
        if !current.is_empty() {
            let mut hasher = DefaultHasher::new();
            (replies.closed, now, current).hash(&mut hasher);
            replies.closed = hasher.finish();
        }
        replies.closed
    }

    /// Forgets the replies that the actor got so far: their digest begins anew.
    pub(crate) fn forget_replies(&self) {
        *self.lock_replies() = Replies::default();
    }

    fn lock_replies(&self) -> MutexGuard<'_, Replies> {
        self.replies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn opens(&self) -> Counted<'_> {
        Counted::new(&self.open)
    }

    pub(crate) fn is_held(&self) -> Counted<'_> {
        Counted::new(&self.held)
    }
}

/// Adds one to a counter when it is created, and subtracts one when it is dropped.
#[derive(Debug)]
pub(crate) struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
