//! The proxy's view of one actor: alive or dead, its connections, its steps.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tokio::sync::watch;

/// Whether an actor is alive, and whether the server sees its death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    Alive,
    /// Dead, with its connections closed.
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
    /// The number of commands that the server holds.
    held: watch::Sender<usize>,
    connections: AtomicU32,
    steps: AtomicU32,
    /// A digest of all bytes that it was sent.
    replies: AtomicU64,
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
            replies: AtomicU64::new(0),
        }
    }

    pub(crate) fn life(&self) -> watch::Receiver<Life> {
        self.life.subscribe()
    }

    /// Kills the actor, or begins a new life.
    pub(crate) fn set_life(&self, life: Life) {
        self.life.send_replace(life);
    }

    /// Completes once the actor is dead and all of its connections are closed.
    pub(crate) async fn gone(&self) {
        let mut life = self.life.subscribe();
        // The senders live as long as the actor.
        let _ = life.wait_for(|life| *life != Life::Alive).await;
        let _ = self.open.subscribe().wait_for(|open| *open == 0).await;
    }

    /// Completes once the server holds a command of this actor.
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

    /// Adds bytes to the digest of what the actor was sent (FNV-1a).
    pub(crate) fn is_sent(&self, bytes: &[u8]) {
        const PRIME: u64 = 0x0100_0000_01b3;
        let mut digest = self.replies.load(Ordering::Relaxed);
        for byte in bytes {
            digest = (digest ^ u64::from(*byte)).wrapping_mul(PRIME);
        }
        self.replies.store(digest, Ordering::Relaxed);
    }

    pub(crate) fn replies(&self) -> u64 {
        self.replies.load(Ordering::Relaxed)
    }

    /// Begins the digest of what the actor is sent anew.
    pub(crate) fn forget_replies(&self) {
        self.replies.store(0, Ordering::Relaxed);
    }

    pub(crate) fn opens(&self) -> Counted<'_> {
        Counted::new(&self.open)
    }

    pub(crate) fn is_held(&self) -> Counted<'_> {
        Counted::new(&self.held)
    }
}

/// Adds one to a counter, and subtracts it when this value is dropped.
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
