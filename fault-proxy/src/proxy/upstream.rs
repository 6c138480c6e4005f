//! The proxy's connection to the server on behalf of one client.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use super::{
    outbound::Replies,
    reply::is_error,
    request::encode,
    stream::{Address, Stream, Writer},
};

/// How long a server may take to notice that a connection was closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// A connection to a server.
pub struct Upstream {
    pub(crate) replies: Replies,
    pub(crate) writer: Writer,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").finish_non_exhaustive()
    }
}

impl Upstream {
    /// Opens a connection and greets the server as its address says.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the greeting.
    pub async fn open(to: &Address) -> io::Result<Self> {
        let (reader, writer) = Stream::connect(to).await?.split();
        let mut upstream = Self { replies: Replies::new(reader), writer };
        for words in to.greeting() {
            let reply = upstream.ask(words).await?;
            if is_error(&reply) {
                let reply = String::from_utf8_lossy(&reply).into_owned();
                return Err(io::Error::other(reply));
            }
        }
        Ok(upstream)
    }

    /// Sends one command and returns its reply. No other command on this connection may
    /// be without a reply.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Bytes> {
        let words = words.iter().map(AsRef::as_ref);
        self.writer.send(&[encode(words)]).await?;
        self.writer.flush().await?;
        self.next_reply().await
    }

    /// Waits for the next message of the server, such as each that follows `MONITOR`.
    ///
    /// # Errors
    /// When the connection ends or breaks.
    pub async fn next_reply(&mut self) -> io::Result<Bytes> {
        self.replies.next().await
    }

    /// Sends `count` commands at once, and returns their replies.
    pub(crate) async fn ask_all(
        &mut self,
        pieces: &[Bytes],
        count: usize,
    ) -> io::Result<Vec<Bytes>> {
        self.writer.send(pieces).await?;
        self.writer.flush().await?;
        let mut replies = Vec::with_capacity(count);
        while replies.len() < count {
            replies.push(self.replies.next().await?);
        }
        Ok(replies)
    }

    /// Closes the connection and waits until the server has seen it. After this, each
    /// command that was sent has run or will never run.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        // If this fails, the server has already closed the connection.
        if self.writer.finish().await.is_err() {
            return Ok(());
        }
        match timeout(CLOSE_LIMIT, self.replies.drain()).await {
            Ok(Ok(()) | Err(_)) => Ok(()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
