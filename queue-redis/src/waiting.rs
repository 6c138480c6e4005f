//! A connection of its own for commands that the server holds until there is something.
//!
//! On the shared connection such a command would hold up all calls behind it. Here one
//! call is meant to be behind it: the server runs it in the moment in which it answers
//! the command before, so that whoever waited pays for one round trip and not for two.

use std::{fmt, future::Future, time::Duration};

use queue_core::{At, Error, Operation};
use redis::{Cmd, FromRedisValue, RedisError, Value, aio::MultiplexedConnection};
use tokio::time::error::Elapsed;

use crate::{Call, Conn, Reply, command, error, limit::within};

/// How much longer than the server the client waits for the answers, before it takes
/// the connection for dead.
const GRACE: Duration = Duration::from_secs(5);

/// A connection on which one caller at a time waits.
pub struct WaitingConn {
    conn: MultiplexedConnection,
    /// How the server calls this connection.
    id: i64,
    at: At,
}

impl WaitingConn {
    /// Connects to the server of `conn`.
    ///
    /// # Errors
    /// As [`Conn::open`].
    pub async fn open(conn: &Conn) -> Result<Self, Error> {
        let at = conn.at(Operation::Claim);
        let mut own = conn.open_blocking().await?;
        let mut ask = command("CLIENT");
        ask.arg("ID");
        let id = within(conn.response_timeout(), answer(at, ask.query_async(&mut own)));
        let id = id.await.map_err(|late| unheard(at, late))??;
        Ok(Self { conn: own, id, at })
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
        let (mut first, mut second) = (self.conn.clone(), self.conn.clone());
        let both = async {
            tokio::join!(biased;
                answer::<Value>(self.at, held.query_async(&mut first)),
                answer::<Value>(self.at, then.by_digest().query_async(&mut second)))
        };
        let both = within(block + GRACE, both).await;
        let (held, then) = both.map_err(|late| unheard(self.at, late))?;
        let reply = |value| Reply::new(self.at, value);
        Ok((held.map(reply)?, then.map(reply)))
    }

    /// The command that has the server answer what it holds here, as if its time were
    /// over: to be sent on another connection.
    pub fn let_go(&self) -> Cmd {
        let mut cmd = command("CLIENT");
        cmd.arg("UNBLOCK").arg(self.id).arg("TIMEOUT");
        cmd
    }
}

fn unheard(at: At, late: Elapsed) -> Error {
    Error::Interrupted { at, source: Box::new(late) }
}

async fn answer<T: FromRedisValue>(
    at: At,
    call: impl Future<Output = Result<T, RedisError>>,
) -> Result<T, Error> {
    call.await.map_err(|error| error::after_send(at, error))
}

impl fmt::Debug for WaitingConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WaitingConn({})", self.id)
    }
}
