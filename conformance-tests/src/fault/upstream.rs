//! A connection of the gate's to the server.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::time::timeout;

use super::{
    outbound::Replies,
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
        Ok(Self { replies: Replies::new(reader), writer })
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
