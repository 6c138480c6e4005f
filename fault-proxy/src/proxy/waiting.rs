//! Blocking commands that the server holds, with their time limits kept by the proxy.

use std::{io, time::Duration};

use bytes::Bytes;

use super::{
    blocking::Blocking,
    inbound::{Answer, Ended, Inbound, gone},
    request::Request,
    shared::Shared,
};

impl Inbound<'_> {
    /// Sends a command that the server may hold, and applies its time limit. Requests
    /// that the client sends meanwhile wait here, as they would on the server.
    pub(super) async fn wait(
        &mut self,
        blocking: Blocking,
        request: &Request,
    ) -> Result<Bytes, Ended> {
        let id = self.session.id().to_owned();
        let deadline = blocking.limit().map(|limit| self.shared.deadline(limit));
        let mut reply = self.send_keeping(&blocking.without_limit(request)).await?;
        tokio::select! {
            biased;
            answered = &mut reply => return answered.map_err(gone),
            held = self.held_at_server(&id) => held?,
        }
        let holds = self.shared.holds(&self.actor.name, request, &id);
        let answer = self.wait_held(&id, reply, deadline).await?;
        let number = holds.number;
        drop(holds);
        self.shared.gate.passes(number).await;
        Ok(answer)
    }

    /// Waits until the server replies, the time limit passes or the client leaves.
    /// After that the server does not hold the command any more.
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
            () = self.requests.end() => return Err(self.release_worker().await),
            () = sleep_until(self.shared, deadline) => {}
        }
        let _under_way = self.shared.traffic.begins();
        let let_go = self.shared.server.let_go(id).await;
        let_go.map_err(|error| self.not_listened_to(&error))?;
        reply.await.map_err(gone)
    }

    /// Completes once the server holds a blocking command of the connection with that
    /// id.
    pub(super) async fn held_at_server(&self, id: &str) -> Result<(), Ended> {
        let held = self.shared.server.holds(id).await;
        held.map_err(|error| self.not_listened_to(&error))
    }

    /// How a connection ends when the proxy's own command fails. If the server is down,
    /// the connection is broken. If the server refuses the command, the error is
    /// recorded, because the run then tests nothing.
    pub(super) fn not_listened_to(&self, error: &io::Error) -> Ended {
        if error.kind() == io::ErrorKind::Other {
            self.shared.ledger.trouble(&format!("the server refused: {error}"));
        }
        Ended::Broken
    }
}

async fn sleep_until(shared: &Shared, deadline: Option<Duration>) {
    match deadline {
        Some(deadline) => shared.clock.sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
