//! The address of an actor at the proxy, and the sockets on which the proxy listens.

use std::{io, path::Path, sync::Arc, time::Duration};

use tokio::net::{TcpListener, UnixListener};

use super::{
    actor::{Actor, Life},
    connection::serve,
    shared::Shared,
    stream::Stream,
};

/// How an actor reaches the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket: `unix:///…`.
    Unix,
    /// A port of 127.0.0.1: `redis://127.0.0.1:…`.
    Tcp,
}

/// The address at which one actor reaches the proxy. Clones stand for the same actor.
#[derive(Debug, Clone)]
pub struct Endpoint {
    actor: Arc<Actor>,
    url: String,
}

impl Endpoint {
    /// Serves an actor on a unix socket at `path`, on the current runtime.
    pub(super) fn on_unix(
        shared: Arc<Shared>,
        actor: Actor,
        path: &Path,
    ) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        let actor = Arc::new(actor);
        let served = Arc::clone(&actor);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let client = Stream::Unix(client);
                tokio::spawn(serve(Arc::clone(&shared), Arc::clone(&served), client));
            }
        });
        Ok(Self { actor, url: format!("unix://{}", path.display()) })
    }

    /// Serves an actor on a free port of 127.0.0.1, on the current runtime.
    pub(super) fn on_tcp(shared: Arc<Shared>, actor: Actor) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let url = format!("redis://{}", listener.local_addr()?);
        let listener = TcpListener::from_std(listener)?;
        let actor = Arc::new(actor);
        let served = Arc::clone(&actor);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(client) = Stream::tcp(client) else { continue };
                tokio::spawn(serve(Arc::clone(&shared), Arc::clone(&served), client));
            }
        });
        Ok(Self { actor, url })
    }

    /// The URL that the actor connects to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Completes once the actor is dead and the server has seen all its connections
    /// end, except those that are kept open or that still have commands to run late.
    pub async fn gone(&self) {
        self.actor.gone().await;
    }

    /// Completes once the server holds a blocking command of this actor.
    pub async fn held(&self) {
        self.actor.held().await;
    }

    /// Returns a digest of all replies since [`Endpoint::forget_replies`]. The replies
    /// since the previous call count as sent at the moment `now`.
    pub fn replies(&self, now: Duration) -> u64 {
        self.actor.replies(now)
    }

    /// Kills or revives the actor.
    pub(super) fn set_life(&self, life: Life) {
        self.actor.set_life(life);
    }

    /// Begins a new digest of replies.
    pub fn forget_replies(&self) {
        self.actor.forget_replies();
    }

    /// How many steps the actor has taken. Steps are numbered from 1.
    pub fn steps(&self) -> u32 {
        self.actor.steps()
    }
}
