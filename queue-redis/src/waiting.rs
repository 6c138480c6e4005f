//! A separate connection for blocking commands, which the server holds until there is a
//! result.
//!
//! On the shared connection such a command would delay all calls behind it. Here one
//! call is sent behind it on purpose: the server runs that call as soon as the blocking
//! command has returned, so the waiter needs one round trip and not two.

use std::{fmt, time::Duration};

use redis::{Cmd, Value};
use relq_core::{
    Error,
    error::{ErrorContext, Operation},
};
use tokio::runtime::{self, Handle};

use crate::{Call, Conn, Reply, command, error, link::Link};

/// How much longer than the server the client waits for the replies. After that it
/// treats the connection as dead.
const GRACE: Duration = Duration::from_secs(5);

/// A connection on which one caller at a time waits.
pub struct WaitingConn {
    link: Link,
    /// The runtime that drives the connection.
    runtime: runtime::Id,
    /// The server's id of this connection.
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

    /// Whether the connection belongs to the runtime of the caller. A connection of
    /// another runtime cannot be used while that runtime is blocked.
    pub fn is_of_this_runtime(&self) -> bool {
        Handle::current().id() == self.runtime
    }

    /// Sends the blocking command `held`, which the server holds for at most `block`,
    /// and `then` directly behind it. Returns both replies. If the server has lost the
    /// script of `then`, the call is not sent again.
    ///
    /// # Errors
    /// When no reply to `held` arrived: the connection must not be used any more.
    pub async fn wait_then(
        &mut self,
        held: &Cmd,
        then: &Call<'_>,
        block: Duration,
    ) -> Result<(Reply, Result<Reply, Error>), Error> {
        let both = self.link.ask_then_run(held, then, block + GRACE).await;
        let refused = |error| error::after_send(self.at, error);
        let (held, then) = both.map_err(refused)?;
        let reply = |value: Value| Reply::new(self.at, value);
        Ok((held.map(reply).map_err(refused)?, then.map(reply).map_err(refused)))
    }

    /// The command that makes the server end the blocking command on this connection,
    /// as if its time had passed. It must be sent on another connection.
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
