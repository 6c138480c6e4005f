//! The proxy's own connection to the server, apart from those that it makes for
//! clients.

use std::io;

use bytes::Bytes;

use super::{reply::is_error, stream::Address, upstream::Upstream};

/// The server behind the proxy, with the proxy's own connection to it.
pub(crate) struct Server {
    pub(crate) address: Address,
    own: tokio::sync::Mutex<Option<Upstream>>,
}

impl Server {
    pub(crate) fn new(address: Address) -> Self {
        Self { address, own: tokio::sync::Mutex::new(None) }
    }

    /// Completes once the server holds a blocking command of the client with that id.
    pub(crate) async fn holds(&self, client: &str) -> io::Result<()> {
        loop {
            let list = self.ask(&["CLIENT", "LIST", "ID", client]).await?;
            let text = String::from_utf8_lossy(&list);
            let flags = text.split(' ').find_map(|field| field.strip_prefix("flags="));
            if flags.is_some_and(|flags| flags.contains('b')) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    /// Makes the server reply to a held command as if its time limit had passed.
    pub(crate) async fn let_go(&self, client: &str) -> io::Result<()> {
        self.ask(&["CLIENT", "UNBLOCK", client, "TIMEOUT"]).await.map(drop)
    }

    /// Sends `count` commands to the server, and returns their replies, among which may
    /// be errors.
    pub(crate) async fn ask_all(
        &self,
        pieces: &[Bytes],
        count: usize,
    ) -> io::Result<Vec<Bytes>> {
        let mut own = self.own.lock().await;
        let mut upstream = match own.take() {
            Some(kept) => kept,
            None => Upstream::open(&self.address).await?,
        };
        let replies = upstream.ask_all(pieces, count).await?;
        *own = Some(upstream);
        Ok(replies)
    }

    /// Sends a command to the server and returns its reply.
    ///
    /// A kept connection may be dead after a restart of the server. If the command
    /// fails on a kept connection, it is sent again on a new one.
    pub(crate) async fn ask<W: AsRef<[u8]>>(&self, words: &[W]) -> io::Result<Bytes> {
        let mut own = self.own.lock().await;
        let kept = match own.take() {
            Some(mut kept) => kept.ask(words).await.ok().map(|reply| (kept, reply)),
            None => None,
        };
        let (upstream, reply) = match kept {
            Some(answered) => answered,
            None => {
                let mut new = Upstream::open(&self.address).await?;
                let reply = new.ask(words).await?;
                (new, reply)
            }
        };
        // The connection is put back only after the reply was read. So a dropped future
        // leaves no unread reply for the next command.
        *own = Some(upstream);
        if is_error(&reply) {
            return Err(io::Error::other(String::from_utf8_lossy(&reply).into_owned()));
        }
        Ok(reply)
    }
}
