//! A separate connection for blocking commands, which the server holds until there is a
//! result.
//!
//! On the shared connection such a command would delay all calls behind it. Here one
//! call is sent behind it on purpose: the server runs that call as soon as the blocking
//! command has returned, so the waiting claim needs one round trip and not two.

use std::{fmt, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{Cmd, Value};
use relq_core::{
    Error,
    error::{ErrorContext, Operation},
};
use tokio::runtime::{self, Handle};

use crate::{Call, Conn, Reply, command, error, link::Link};

/// The server ends a blocking command after the time limit of the command. The client
/// waits this much longer for the replies, and then treats the connection as dead.
const GRACE: Duration = Duration::from_secs(5);

/// The reply to a blocking command, and the reply to the call that was sent behind it. The
/// server runs the call also if it refuses the command.
type Replies = (Result<Reply, Error>, Result<Reply, Error>);

/// A connection on which one caller at a time waits.
pub struct WaitingConn {
    link: Link,
    conn: Conn,
    /// The runtime that drives the connection.
    runtime: runtime::Id,
    /// The id that the server gave to this connection.
    id: i64,
    at: ErrorContext,
}

impl WaitingConn {
    /// Opens a separate connection to the server of `conn`.
    ///
    /// # Errors
    /// The errors of [`Conn::open`].
    pub fn open(conn: &Conn) -> BoxFuture<'_, Result<Self, Error>> {
        let opening = async move {
            let at = conn.at(Operation::Claim);
            let mut link = conn.open_blocking().await?;
            let mut ask = command("CLIENT");
            ask.arg("ID");
            let id = link.ask(&ask, conn.response_timeout()).await;
            let id = id.map_err(|error| error::after_send(at, error))?;
            let (conn, runtime) = (conn.clone(), Handle::current().id());
            Ok(Self { link, conn, runtime, id, at })
        };
        opening.boxed()
    }

    /// Whether the connection belongs to the caller's runtime. A connection of another
    /// runtime cannot be used while that runtime is blocked.
    pub fn is_of_this_runtime(&self) -> bool {
        Handle::current().id() == self.runtime
    }

    /// Sends the blocking command `held`, which the server holds for at most `block`,
    /// and `then` directly behind it. Returns both replies. If the server has lost the
    /// script of `then`, the call is not sent again.
    ///
    /// # Errors
    /// When a reply did not arrive: the connection must not be used any more.
    pub fn wait_then<'a>(
        &'a mut self,
        held: &'a Cmd,
        then: &'a Call<'_>,
        block: Duration,
    ) -> BoxFuture<'a, Result<Replies, Error>> {
        let waiting = async move {
            let both = self.link.ask_then_run(held, then, block + GRACE).await;
            let refused = |error| self.conn.refused(self.at, error);
            let (held, then) = both.map_err(refused)?;
            let reply = |value: Value| Reply::new(self.at, value);
            Ok((held.map(reply).map_err(refused), then.map(reply).map_err(refused)))
        };
        waiting.boxed()
    }

    /// Returns the command that makes the server end the blocking command of this
    /// connection, as if its time limit had passed. It must be sent on another
    /// connection.
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
