//! From the client to the server, step by step.

use std::{io, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use tokio::sync::oneshot::{self, error::RecvError};

use super::{
    actor::{Actor, Life},
    blocking::Blocking,
    command::Kind,
    frame::Malformed,
    gate::Shared,
    record::{Behind, Fate, Fault, StepRecord, When},
    request::{Request, RequestParser},
    rewrite::{self, Session},
    stream::{Reader, Writer},
    wire::{Reply, Wire},
};

/// A reply that is kept from the client.
type Answer = oneshot::Receiver<Bytes>;

/// Why the direction came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The client sends no more; the server was told.
    ClientLeft,
    /// One of the two is not there any more.
    Broken,
    /// The client sent what is not of the protocol.
    Malformed(Malformed),
    /// A fault breaks this connection.
    Cut,
    /// A fault ends the actor; these commands run late.
    Dies(Life, Vec<Request>),
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Requests as they come from the client.
pub(crate) struct Requests {
    reader: Reader,
    buffer: BytesMut,
    parser: RequestParser,
}

impl Requests {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, buffer: BytesMut::new(), parser: RequestParser::default() }
    }

    fn buffered(&mut self) -> Result<Option<Request>, Ended> {
        self.parser.next(&mut self.buffer).map_err(Ended::Malformed)
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.reader.read(&mut self.buffer).await
    }

    /// Completes when the client sends no more. What comes before is kept.
    async fn end(&mut self) {
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
    /// Hands requests on until one side ends or a fault does.
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
            Ok(bytes) if bytes > 0 => Ok(()),
            Ok(_) | Err(_) => Err(self.leave().await),
        }
    }

    async fn leave(&mut self) -> Ended {
        match self.server.finish().await {
            Ok(()) => Ended::ClientLeft,
            Err(_) => Ended::Broken,
        }
    }

    async fn take(&mut self, request: Request) -> Result<(), Ended> {
        let kind = Kind::of(&request);
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
            // What came before must not wait with it.
            self.server.flush().await?;
        }
        match self.shared.ledger.arrives(step, can_wait).await {
            None => self.go_through(kind, &request).await,
            Some(fault) => self.strike(fault, kind, request).await,
        }
    }

    fn describe(&self, kind: Kind, request: &Request) -> StepRecord {
        let contents = match kind {
            Kind::Exec => self.session.contents().to_vec(),
            _ => Vec::new(),
        };
        StepRecord {
            actor: self.actor.name.clone(),
            connection: self.connection,
            step: self.actor.next_step(),
            command: request.word(0),
            script: rewrite::script_label(&self.shared.scripts(), kind, request),
            contents,
            fate: Fate::Passed,
        }
    }

    async fn go_through(&mut self, kind: Kind, request: &Request) -> Result<(), Ended> {
        match kind {
            Kind::Blocking(blocking) => self.wait(blocking, request).await,
            _ => self.pass(kind, request).await,
        }
    }

    /// Sends a request on, with the gate's time in it where it asks for time.
    async fn pass(&mut self, kind: Kind, request: &Request) -> Result<(), Ended> {
        let (pieces, reply) =
            rewrite::for_server(self.shared, self.session, kind, request);
        reply.into_iter().for_each(|reply| self.wire.expect(reply));
        Ok(self.server.send(&pieces).await?)
    }

    async fn strike(
        &mut self,
        fault: Fault,
        kind: Kind,
        request: Request,
    ) -> Result<(), Ended> {
        self.hand_on_what_came_before().await?;
        match fault {
            Fault::Before => Err(Ended::Dies(Life::Closed, Vec::new())),
            Fault::Cut(When::Before) => Err(Ended::Cut),
            Fault::Ghost => {
                let mut late = vec![request];
                late.append(&mut self.left_behind(Behind::Ghosts)?);
                Err(Ended::Dies(Life::Closed, late))
            }
            Fault::After(behind) => {
                self.run_unheard(kind, &request).await?;
                let late = self.left_behind(behind)?;
                Err(Ended::Dies(Life::Closed, late))
            }
            Fault::Cut(When::After) => {
                self.run_unheard(kind, &request).await?;
                Err(Ended::Cut)
            }
            Fault::Error(error) => self.refuse(kind, &format!("-{error}\r\n")).await,
            Fault::TimeOut => self.time_out(kind),
            Fault::WaiterCloses => self.die_waiting(kind, &request, Life::Closed).await,
            Fault::WaiterFreezes => {
                self.die_waiting(kind, &request, Life::Silent).await
            }
        }
    }

    /// Completes once the client has all replies to what it sent before, so that the
    /// same fault leaves it with the same knowledge in each run.
    async fn hand_on_what_came_before(&mut self) -> Result<(), Ended> {
        let (told, reached) = oneshot::channel();
        self.wire.expect(Reply::Mark(told));
        self.server.flush().await?;
        reached.await.map_err(gone)
    }

    /// What the client sent behind the request in hand.
    fn left_behind(&mut self, behind: Behind) -> Result<Vec<Request>, Ended> {
        let mut left = Vec::new();
        let mut is_queueing = false;
        while let Some(request) = self.requests.buffered()? {
            let kind = Kind::of(&request);
            match kind {
                Kind::Multi => is_queueing = true,
                Kind::Exec | Kind::Discard => is_queueing = false,
                _ => {}
            }
            if kind.is_step() && !is_queueing {
                let mut step = self.describe(kind, &request);
                step.fate = Fate::LeftBehind(behind);
                self.shared.ledger.write(step);
            }
            left.push(request);
        }
        match behind {
            Behind::Dropped => Ok(Vec::new()),
            Behind::Ghosts => Ok(left),
        }
    }

    /// Has the server run it and keeps the reply from the client.
    async fn run_unheard(
        &mut self,
        kind: Kind,
        request: &Request,
    ) -> Result<(), Ended> {
        let (pieces, _) = rewrite::for_server(self.shared, self.session, kind, request);
        let ran = self.send_keeping(&pieces).await?;
        ran.await.map(drop).map_err(gone)
    }

    async fn send_keeping(&mut self, pieces: &[Bytes]) -> Result<Answer, Ended> {
        let (told, reply) = oneshot::channel();
        self.wire.expect(Reply::Keep(told));
        self.server.send(pieces).await?;
        self.server.flush().await?;
        Ok(reply)
    }

    /// Answers an error in the server's place.
    async fn refuse(&mut self, kind: Kind, error: &str) -> Result<(), Ended> {
        if kind == Kind::Exec {
            self.session.end_transaction();
            self.send_keeping(&[rewrite::discard()]).await?;
        }
        self.wire.expect(Reply::Made(error.to_owned().into()));
        Ok(())
    }

    fn time_out(&mut self, kind: Kind) -> Result<(), Ended> {
        if let Kind::Blocking(blocking) = kind {
            let answer = blocking.time_out(self.wire.protocol());
            self.wire.expect(Reply::Made(Bytes::from_static(answer)));
        }
        Ok(())
    }

    async fn die_waiting(
        &mut self,
        kind: Kind,
        request: &Request,
        life: Life,
    ) -> Result<(), Ended> {
        let died = Ended::Dies(life, Vec::new());
        let Kind::Blocking(blocking) = kind else {
            self.run_unheard(kind, request).await?;
            return Err(died);
        };
        let id = self.id_at_server().await?;
        let mut reply = self.send_keeping(&blocking.without_limit(request)).await?;
        tokio::select! {
            _ = &mut reply => {}
            held = self.shared.server.holds(&id) => held?,
        }
        Err(died)
    }

    /// Sends a command that the server may hold, and keeps its time. What the client
    /// sends meanwhile waits here, as it would on the server.
    async fn wait(
        &mut self,
        blocking: Blocking,
        request: &Request,
    ) -> Result<(), Ended> {
        let id = self.id_at_server().await?;
        let deadline = blocking.limit().map(|limit| self.shared.deadline(limit));
        let mut reply = self.send_keeping(&blocking.without_limit(request)).await?;
        let answered = tokio::select! {
            biased;
            answered = &mut reply => answered.map_err(gone)?,
            held = self.shared.server.holds(&id) => {
                held?;
                self.wait_held(&id, reply, deadline).await?
            }
        };
        // By now nothing of the wait is left for anyone to see.
        self.wire.expect(Reply::Made(answered));
        Ok(())
    }

    async fn wait_held(
        &mut self,
        id: &str,
        mut reply: Answer,
        deadline: Option<Duration>,
    ) -> Result<Bytes, Ended> {
        let _held = self.actor.is_held();
        tokio::select! {
            biased;
            answered = &mut reply => return answered.map_err(gone),
            () = self.requests.end() => return Err(self.leave().await),
            () = sleep_until(self.shared, deadline) => {}
        }
        self.shared.server.let_go(id).await?;
        reply.await.map_err(gone)
    }

    /// How the server calls this connection.
    async fn id_at_server(&mut self) -> Result<String, Ended> {
        if let Some(id) = self.session.id() {
            return Ok(id.to_owned());
        }
        let reply = self.send_keeping(&[rewrite::client_id()]).await?;
        let reply = reply.await.map_err(gone)?;
        let id =
            String::from_utf8_lossy(&reply).trim_start_matches(':').trim().to_owned();
        self.session.set_id(&id);
        Ok(id)
    }
}

async fn sleep_until(shared: &Shared, deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => shared.clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// The other direction ended, so the answer will not come.
fn gone(_: RecvError) -> Ended {
    Ended::Broken
}
