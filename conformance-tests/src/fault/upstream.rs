//! A connection of the proxy's to the server.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use super::{
    outbound::Replies,
    reply::is_error,
    request::encode,
    stream::{Address, Stream, Writer},
};

/// How long a server may take to see that a connection was closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) struct Upstream {
    pub(crate) replies: Replies,
    pub(crate) writer: Writer,
}

impl Upstream {
    pub(crate) async fn open(to: &Address) -> io::Result<Self> {
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

    /// Sends one command and gets its reply, where no other is under way.
    pub(crate) async fn ask<W: AsRef<[u8]>>(
        &mut self,
        words: &[W],
    ) -> io::Result<Bytes> {
        let words = words.iter().map(AsRef::as_ref);
        self.writer.send(&[encode(words)]).await?;
        self.writer.flush().await?;
        self.replies.next().await
    }

    /// Closes it and waits until the server has seen it: whatever was sent has run
    /// by then, or never will.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        // A server that is gone has closed it already.
        if self.writer.finish().await.is_err() {
            return Ok(());
        }
        match timeout(CLOSE_LIMIT, self.replies.drain()).await {
            Ok(Ok(()) | Err(_)) => Ok(()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}
