//! Passes the server's replies on to the client.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot;

use super::{
    actor::Actor,
    frame::Malformed,
    reply::{Announcement, ReplyParser, is_error},
    stream::{Reader, Writer},
    traffic::Traffic,
    wire::{Reply, Wire},
};

/// The reason why no more replies are passed on.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The server closed the connection.
    ServerLeft,
    /// The client no longer reads.
    ClientGone,
    /// The server sent bytes that do not follow the protocol.
    Malformed(Malformed),
}

/// Reads the server's replies from its connection.
pub(crate) struct Replies {
    pub(crate) reader: Reader,
    buffer: BytesMut,
    parser: ReplyParser,
}

impl Replies {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, buffer: BytesMut::new(), parser: ReplyParser::default() }
    }

    pub(crate) fn buffered(&mut self) -> Result<Option<Bytes>, Malformed> {
        self.parser.next(&mut self.buffer)
    }

    pub(crate) async fn read(&mut self) -> io::Result<usize> {
        self.reader.read(&mut self.buffer).await
    }

    /// The next reply, or an error at the end of the stream.
    pub(crate) async fn next(&mut self) -> io::Result<Bytes> {
        loop {
            match self.buffered() {
                Ok(Some(reply)) => return Ok(reply),
                Ok(None) => {}
                Err(Malformed(why)) => return Err(io::Error::other(why)),
            }
            if self.read().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads and drops everything until the server has closed its side.
    pub(crate) async fn drain(&mut self) -> io::Result<()> {
        while self.read().await? > 0 {
            self.buffer.clear();
        }
        Ok(())
    }
}

pub(crate) struct Outbound<'a> {
    pub(crate) replies: &'a mut Replies,
    pub(crate) client: &'a mut Writer,
    pub(crate) wire: &'a Wire,
    pub(crate) actor: &'a Actor,
    connection: u32,
    traffic: &'a Traffic,
    /// Whether the client has subscriptions. In RESP2 only such a client gets messages
    /// without a request.
    is_subscribed: bool,
}

impl<'a> Outbound<'a> {
    pub(crate) fn new(
        replies: &'a mut Replies,
        client: &'a mut Writer,
        wire: &'a Wire,
        (actor, connection): (&'a Actor, u32),
        traffic: &'a Traffic,
    ) -> Self {
        let is_subscribed = false;
        Self { replies, client, wire, actor, connection, traffic, is_subscribed }
    }

    /// Passes replies on until one side ends.
    pub(crate) async fn run(&mut self) -> Stopped {
        match self.run_to_end().await {
            Ok(stopped) => stopped,
            Err(_broken) => Stopped::ClientGone,
        }
    }

    async fn run_to_end(&mut self) -> io::Result<Stopped> {
        loop {
            self.send_own_replies().await?;
            match self.replies.buffered() {
                Ok(Some(reply)) => self.forward(reply).await?,
                Ok(None) => {
                    self.client.flush().await?;
                    tokio::select! {
                        read = self.replies.read() => match read {
                            Ok(bytes) if bytes > 0 => self.traffic.moves(),
                            Ok(_) | Err(_) => return Ok(Stopped::ServerLeft),
                        },
                        () = self.wire.changed() => {}
                    }
                }
                Err(malformed) => return Ok(Stopped::Malformed(malformed)),
            }
        }
    }

    async fn send_own_replies(&mut self) -> io::Result<()> {
        while let Some(reply) = self.wire.next_made_here() {
            match reply {
                Reply::Made(made) => self.send(made).await?,
                Reply::Mark(told) => {
                    self.client.flush().await?;
                    tell(told, ());
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn forward(&mut self, reply: Bytes) -> io::Result<()> {
        if self.is_announcement(&reply) {
            return self.send(reply).await;
        }
        match self.wire.next() {
            Some(Reply::Keep(told)) => {
                self.client.flush().await?;
                tell(told, reply);
                Ok(())
            }
            Some(Reply::Replace(other)) if !is_error(&reply) => self.send(other).await,
            Some(Reply::Hello(version)) => {
                if !is_error(&reply) {
                    self.wire.set_protocol(version);
                }
                self.send_unlisted(reply).await
            }
            Some(Reply::Unlisted) => self.send_unlisted(reply).await,
            // A reply that no request expects is an error before the server closes.
            _ => self.send(reply).await,
        }
    }

    async fn send(&mut self, reply: Bytes) -> io::Result<()> {
        if self.wire.is_muted() {
            return Ok(());
        }
        self.actor.is_sent(self.connection, &reply);
        self.client.send(&[reply]).await
    }

    async fn send_unlisted(&mut self, reply: Bytes) -> io::Result<()> {
        if self.wire.is_muted() {
            return Ok(());
        }
        self.client.send(&[reply]).await
    }

    fn is_announcement(&mut self, reply: &[u8]) -> bool {
        let is_push = reply.first() == Some(&b'>');
        if !is_push && !self.is_subscribed && !self.wire.expects_confirmation() {
            return false;
        }
        let Some(announcement) = Announcement::read(reply) else { return is_push };
        if !is_push && !announcement.is_pubsub() {
            return false;
        }
        if announcement.is_confirmation() {
            self.is_subscribed = announcement.count.is_some_and(|count| count > 0);
            self.wire.confirm();
        }
        true
    }
}

/// Sends a reply to its receiver, which is gone if the connection is already closing.
fn tell<T>(told: oneshot::Sender<T>, reply: T) {
    drop(told.send(reply));
}
