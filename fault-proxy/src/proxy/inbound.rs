//! Passes a client's requests on to the server, and injects faults at its steps.

use std::{io, sync::Arc};

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot::{self, error::RecvError};

use super::{
    actor::{Actor, Life},
    command::Kind,
    frame::Malformed,
    record::{Fate, StepRecord},
    request::{Request, RequestParser},
    rewrite::{self, Session},
    shared::Shared,
    stream::{Reader, Writer},
    wire::{Reply, Wire},
};

/// The server's reply to a request of the proxy itself, which the client does not get.
pub(super) type Answer = oneshot::Receiver<Bytes>;

/// The reason why no more requests are passed on.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client sends no more, and the server was told so.
    ClientLeft,
    /// The connection to the client or to the server is broken.
    Broken,
    /// The client sent bytes that do not follow the protocol.
    Malformed(Malformed),
    /// A fault breaks this connection.
    Cut,
    /// A fault kills the actor. These of its commands run late.
    Dies(Life, Vec<Request>),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Reads the client's requests from its connection.
pub(crate) struct Requests {
    reader: Reader,
    buffer: BytesMut,
    parser: RequestParser,
}

impl Requests {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, buffer: BytesMut::new(), parser: RequestParser::default() }
    }

    pub(super) fn buffered(&mut self) -> Result<Option<Request>, Ended> {
        self.parser.next(&mut self.buffer).map_err(Ended::Malformed)
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.reader.read(&mut self.buffer).await
    }

    /// Completes when the client sends no more. Keeps the requests that arrive before.
    pub(super) async fn end(&mut self) {
        while matches!(self.read().await, Ok(bytes) if bytes > 0) {}
    }
}

pub(crate) struct Inbound<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) actor: &'a Actor,
    pub(crate) connection: u32,
    pub(crate) requests: &'a mut Requests,
    pub(crate) server: &'a mut Writer,
    pub(crate) wire: &'a Wire,
    pub(crate) session: &'a mut Session,
}

impl Inbound<'_> {
    /// Passes requests on until one side ends or a fault ends the connection.
    pub(crate) async fn run(&mut self) -> Ended {
        loop {
            let took = match self.requests.buffered() {
                Ok(Some(request)) => self.take(request).await,
                Ok(None) => self.wait_for_more().await,
                Err(malformed) => Err(malformed),
            };
            if let Err(ended) = took {
                return ended;
            }
        }
    }

    async fn wait_for_more(&mut self) -> Result<(), Ended> {
        self.server.flush().await?;
        match self.requests.read().await {
            Ok(bytes) if bytes > 0 => {
                self.shared.traffic.moves();
                Ok(())
            }
            Ok(_) | Err(_) => Err(self.release_worker().await),
        }
    }

    pub(super) async fn release_worker(&mut self) -> Ended {
        match self.server.finish().await {
            Ok(()) => Ended::ClientLeft,
            Err(_) => Ended::Broken,
        }
    }

    async fn take(&mut self, request: Request) -> Result<(), Ended> {
        let kind = Kind::of(&request);
        self.shared.show(&request);
        if let Kind::Refused(why) = kind {
            self.wire.expect(Reply::Made(format!("-ERR {why}\r\n").into()));
            return Ok(());
        }
        if !kind.is_step() || (self.session.is_queueing() && kind != Kind::Exec) {
            return self.pass(kind, &request).await;
        }
        let step = self.describe(kind, &request);
        let can_wait = matches!(kind, Kind::Blocking(_));
        if self.shared.ledger.is_parking() {
            // The server must have run all earlier requests of this client before this
            // step waits, because a step of another actor may pass meanwhile.
            self.finish_earlier_requests().await?;
        }
        match self.shared.ledger.arrives(step, &request, can_wait).await {
            None => self.go_through(kind, &request).await,
            Some(fault) => self.inject(fault, kind, request).await,
        }
    }

    pub(super) fn describe(&self, kind: Kind, request: &Request) -> StepRecord {
        let contents = match kind {
            Kind::Exec => self.session.contents().to_vec(),
            _ => Vec::new(),
        };
        let arguments = match kind {
            Kind::Exec => self.session.arguments(),
            _ => request.digest(),
        };
        let arguments = self.shared.ledger.is_parking().then_some(arguments);
        StepRecord {
            actor: self.actor.name.clone(),
            connection: self.connection,
            step: self.actor.next_step(),
            command: request.word(0),
            script: rewrite::script_label(&self.shared.scripts(), kind, request),
            contents,
            arguments,
            fate: Fate::Passed,
        }
    }

    pub(super) async fn go_through(
        &mut self,
        kind: Kind,
        request: &Request,
    ) -> Result<(), Ended> {
        match kind {
            Kind::Blocking(blocking) => {
                let answer = self.wait(blocking, request).await?;
                self.wire.expect(Reply::Made(answer));
                Ok(())
            }
            _ => self.pass(kind, request).await,
        }
    }

    /// Passes a request on to the server. A script also gets the proxy's time.
    pub(super) async fn pass(
        &mut self,
        kind: Kind,
        request: &Request,
    ) -> Result<(), Ended> {
        let (pieces, reply) =
            rewrite::for_server(self.shared, self.session, kind, request);
        reply.into_iter().for_each(|reply| self.wire.expect(reply));
        Ok(self.server.send(&pieces).await?)
    }

    /// Sends a request whose reply the client does not get. Returns a receiver of the
    /// reply.
    pub(super) async fn send_keeping(
        &mut self,
        pieces: &[Bytes],
    ) -> Result<Answer, Ended> {
        let (told, reply) = oneshot::channel();
        self.wire.expect(Reply::Keep(told));
        self.server.send(pieces).await?;
        self.server.flush().await?;
        Ok(reply)
    }
}

/// The error when the task that reads replies has ended, so that the reply cannot come.
pub(super) fn gone(_: RecvError) -> Ended {
    Ended::Broken
}
