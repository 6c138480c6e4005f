//! A connection of its own for commands that the server holds until there is something.
//!
//! On the shared connection such a command would hold up all calls behind it. Here one
//! call is meant to be behind it: the server runs it in the moment in which it answers
//! the command before, so that whoever waited pays for one round trip and not for two.

use std::{fmt, time::Duration};

use redis::{Cmd, Value};
use relq_core::{Error, ErrorContext, Operation};
use tokio::runtime::{self, Handle};

use crate::{Call, Conn, Reply, command, error, link::Link};

/// How much longer than the server the client waits for the answers, before it takes
/// the connection for dead.
const GRACE: Duration = Duration::from_secs(5);

/// A connection on which one caller at a time waits.
pub struct WaitingConn {
    link: Link,
    /// The runtime that reads from it.
    runtime: runtime::Id,
    /// How the server calls this connection.
    id: i64,
    at: ErrorContext,
}

impl WaitingConn {
    /// Connects to the server of `conn`.
    ///
    /// # Errors
    /// As [`Conn::open`].
    pub async fn open(conn: &Conn) -> Result<Self, Error> {
        let at = conn.at(Operation::Claim);
        let mut link = conn.open_blocking().await?;
        let mut ask = command("CLIENT");
        ask.arg("ID");
        let id = link.ask(&ask, conn.response_timeout()).await;
        let id = id.map_err(|error| error::after_send(at, error))?;
        Ok(Self { link, runtime: Handle::current().id(), id, at })
    }

    /// Whether it belongs to the runtime of the caller. One of another runtime is of no
    /// use while that is blocked.
    pub fn is_of_this_runtime(&self) -> bool {
        Handle::current().id() == self.runtime
    }

    /// Sends a command that the server holds for `block` at most, and `then` right
    /// behind it; answers both. The script is not sent again when the server does not
    /// know it.
    ///
    /// # Errors
    /// When no answer to `held` came: the connection is no good any more.
    pub async fn wait_then(
        &mut self,
        held: &Cmd,
        then: &Call<'_>,
        block: Duration,
    ) -> Result<(Reply, Result<Reply, Error>), Error> {
        let both = self.link.ask_both((held, then.by_digest()), block + GRACE).await;
        let refused = |error| error::after_send(self.at, error);
        let (held, then) = both.map_err(refused)?;
        let reply = |value: Value| Reply::new(self.at, value);
        Ok((held.map(reply).map_err(refused)?, then.map(reply).map_err(refused)))
    }

    /// The command that has the server answer what it holds here, as if its time were
    /// over: to be sent on another connection.
    pub fn let_go(&self) -> Cmd {
        let mut cmd = command("CLIENT");
        cmd.arg("UNBLOCK").arg(self.id).arg("TIMEOUT");
        cmd
    }
}

impl fmt::Debug for WaitingConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitingConn({})", self.id)
    }
}
