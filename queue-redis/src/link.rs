//! One open connection: the client library's connection on a socket whose progress is
//! watched.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, RedisError,
    aio::MultiplexedConnection,
};
use tokio::{sync::Semaphore, task::AbortHandle, time::timeout};

use crate::{
    RedisConfig, error,
    progress::{Progress, Watched},
    socket,
};

/// A connection that the calls of many tasks of one runtime share. It is closed when
/// the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) conn: MultiplexedConnection,
    pub(crate) progress: Arc<Progress>,
    driver: Arc<Driver>,
    /// Whether the queue's marker is known to exist (R25).
    is_marked: Arc<AtomicBool>,
}

/// The task that reads from the socket and writes to it.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    /// Connects. The connection is driven by the runtime of the caller.
    pub(crate) async fn open(config: &RedisConfig) -> Result<Self, RedisError> {
        let opened = timeout(config.connect_timeout, Self::connect(config)).await;
        opened.unwrap_or_else(|late| Err(unreached(config, &late.into())))
    }

    async fn connect(config: &RedisConfig) -> Result<Self, RedisError> {
        let socket = socket::connect(config.info.addr()).await;
        let socket = socket.map_err(|error| unreached(config, &error))?;
        let (stream, progress) = Watched::new(socket);
        // Sending must never wait for buffer space: a future that waited there and was
        // no longer polled would block all other calls.
        let settings = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(Semaphore::MAX_PERMITS);
        let redis = config.info.redis_settings();
        let (conn, driver) =
            MultiplexedConnection::new_with_config(redis, stream, settings).await?;
        let driver = Driver(tokio::spawn(driver).abort_handle());
        let is_marked = Arc::default();
        Ok(Self { conn, progress, driver: Arc::new(driver), is_marked })
    }

    /// Whether the queue's marker is known to exist.
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Acquire)
    }

    pub(crate) fn set_marked(&self, is_marked: bool) {
        self.is_marked.store(is_marked, Ordering::Release);
    }

    /// Whether calls can be sent, as far as this client knows.
    pub(crate) fn is_open(&self) -> bool {
        !self.driver.0.is_finished()
    }

    /// Closes the connection for all clones.
    pub(crate) fn close(&self) {
        self.driver.0.abort();
    }

    /// Sends one command and returns its reply. The command is sent once this future
    /// was polled. Gives up once the connection was silent for `limit`.
    pub(crate) async fn ask<T: FromRedisValue>(
        &mut self,
        cmd: &Cmd,
        limit: Duration,
    ) -> Result<T, RedisError> {
        let answer = cmd.query_async(&mut self.conn);
        let answer = self.progress.within(limit, answer).await;
        answer.unwrap_or_else(|silence| Err(io::Error::from(silence).into()))
    }

    /// Sends two commands directly one after the other, and returns both replies.
    pub(crate) async fn ask_both<A: FromRedisValue, B: FromRedisValue>(
        &self,
        (first, second): (&Cmd, &Cmd),
        limit: Duration,
    ) -> Result<(Result<A, RedisError>, Result<B, RedisError>), RedisError> {
        let (mut one, mut other) = (self.conn.clone(), self.conn.clone());
        let both = async {
            tokio::join!(biased;
                first.query_async(&mut one), second.query_async(&mut other))
        };
        let both = self.progress.within(limit, both).await;
        both.map_err(|silence| io::Error::from(silence).into())
    }
}

/// The error of a connection that was not opened, with the server's address. The error
/// of the system does not name it.
fn unreached(config: &RedisConfig, error: &io::Error) -> RedisError {
    let text = format!("{config}: {error}");
    match error.kind() {
        // No server was asked: a setting of this process is wrong.
        io::ErrorKind::InvalidInput => {
            (ErrorKind::InvalidClientConfig, error::MISCONFIGURED, text).into()
        }
        kind => io::Error::new(kind, text).into(),
    }
}
