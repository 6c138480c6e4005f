//! Injects a fault at a step, which is a command on its way to the server.

use bytes::Bytes;
use tokio::sync::oneshot;

use super::{
    actor::Life,
    command::Kind,
    inbound::{Ended, Inbound, gone},
    record::{Behind, Fate, Fault, When},
    request::Request,
    rewrite,
    wire::Reply,
};

impl Inbound<'_> {
    /// Carries out a fault at a step. An error says how the connection ends.
    pub(super) async fn inject(
        &mut self,
        fault: Fault,
        kind: Kind,
        request: Request,
    ) -> Result<(), Ended> {
        let shared = self.shared;
        let unfinished = shared.ledger.unfinished(&fault);
        self.finish_earlier_requests().await?;
        match fault {
            Fault::Meanwhile(command) => {
                self.tell_server(&command).await?;
                drop(unfinished);
                self.go_through(kind, &request).await
            }
            Fault::Before => Err(Ended::Dies(Life::Closed, Vec::new())),
            Fault::Cut(When::Before) => Err(Ended::Cut),
            Fault::Ghost => {
                let mut late = vec![request];
                late.append(&mut self.left_behind(Behind::Ghosts)?);
                Err(Ended::Dies(Life::Closed, late))
            }
            Fault::After(behind) => {
                self.run_without_reply(kind, &request).await?;
                let late = self.left_behind(behind)?;
                Err(Ended::Dies(Life::Closed, late))
            }
            Fault::Cut(When::After) => {
                self.run_without_reply(kind, &request).await?;
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

    /// Completes once the client has the replies to all its earlier requests. So a
    /// fault hits a client that knows the same in each run.
    pub(super) async fn finish_earlier_requests(&mut self) -> Result<(), Ended> {
        let (told, reached) = oneshot::channel();
        self.wire.expect(Reply::Mark(told));
        self.server.flush().await?;
        reached.await.map_err(gone)
    }

    /// The requests that the client has sent after the current one and that run late.
    /// Empty if they are to be dropped.
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

    /// Lets the server run the request, and sends the client nothing more. The
    /// connection must end after this.
    async fn run_without_reply(
        &mut self,
        kind: Kind,
        request: &Request,
    ) -> Result<(), Ended> {
        self.wire.mute();
        match kind {
            Kind::Blocking(blocking) => {
                self.wait(blocking, request).await?;
                return Ok(());
            }
            _ => self.pass(kind, request).await?,
        }
        self.finish_earlier_requests().await
    }

    /// Sends the client an error in place of the server's reply.
    async fn refuse(&mut self, kind: Kind, error: &str) -> Result<(), Ended> {
        if kind == Kind::Exec {
            self.session.end_transaction();
            self.send_keeping(&[rewrite::discard()]).await?;
        }
        self.wire.expect(Reply::Made(error.to_owned().into()));
        Ok(())
    }

    /// Sends the server the command of [`Fault::Meanwhile`], on the proxy's own
    /// connection.
    async fn tell_server(&mut self, command: &[String]) -> Result<(), Ended> {
        let words: Vec<_> = command.iter().map(String::as_str).collect();
        let told = self.shared.server.ask(&words).await;
        told.map(drop).map_err(|error| self.not_listened_to(&error))
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
        self.wire.mute();
        let Kind::Blocking(blocking) = kind else {
            self.run_without_reply(kind, request).await?;
            return Err(died);
        };
        let id = self.session.id().to_owned();
        let mut reply = self.send_keeping(&blocking.without_limit(request)).await?;
        tokio::select! {
            _ = &mut reply => {}
            held = self.held_at_server(&id) => held?,
        }
        Err(died)
    }
}
