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
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError,
    RedisResult, Value, aio::MultiplexedConnection,
};
use tokio::{sync::Semaphore, task::AbortHandle, time::timeout};

use crate::{
    Call, RedisConfig, Script, error,
    progress::{Progress, Watched},
    script::KnownScripts,
    socket,
};

/// A connection that the calls of many tasks of one runtime share. It is closed when
/// the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) conn: MultiplexedConnection,
    pub(crate) progress: Arc<Progress>,
    pub(crate) scripts: KnownScripts,
    driver: Arc<Driver>,
    /// Whether the queue's marker is known to exist (R25).
    is_marked: Arc<AtomicBool>,
    /// Whether new calls go to another connection.
    is_retired: Arc<AtomicBool>,
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
        Ok(Self {
            conn,
            progress,
            scripts: KnownScripts::default(),
            driver: Arc::new(driver),
            is_marked: Arc::default(),
            is_retired: Arc::default(),
        })
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
        !self.driver.0.is_finished() && !self.is_retired.load(Ordering::Acquire)
    }

    /// Sends no new calls on the connection, if the error says that another one may work
    /// better. A call that is still waiting for its reply gets it where the server still
    /// answers; so only a broken connection is closed.
    pub(crate) fn heed(&self, error: &RedisError) {
        if !error::condemns_connection(error) {
            return;
        }
        self.is_retired.store(true, Ordering::Release);
        if error.code().is_none() {
            self.driver.0.abort();
        }
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

    /// Sends commands in one write. Returns the reply to each.
    pub(crate) async fn ask_all(
        &mut self,
        mut asking: Pipeline,
        limit: Duration,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        // An error reply is the result of one command, and not of all.
        asking.ignore_errors();
        let answers = asking.query_async(&mut self.conn);
        let answers = self.progress.within(limit, answers).await;
        answers.unwrap_or_else(|silence| Err(io::Error::from(silence).into()))
    }

    /// Calls a script. If the server is not known to have it, the call is sent in one
    /// write with a command that loads it. Both are sent when this future is polled for
    /// the first time.
    pub(crate) async fn run(
        &mut self,
        call: &Call<'_>,
        limit: Duration,
    ) -> RedisResult<Value> {
        let answer = if self.scripts.has(call.script()) {
            self.ask(call.by_digest(), limit).await
        } else {
            self.load_and_run(call, limit).await
        };
        self.scripts.heard(call.script(), &answer);
        answer
    }

    /// If the server refuses to load the script, the call finds out whether the server
    /// has it.
    async fn load_and_run(
        &mut self,
        call: &Call<'_>,
        limit: Duration,
    ) -> RedisResult<Value> {
        let mut both = redis::pipe();
        both.add_command(call.script().loading()).add_command(call.by_digest().clone());
        let mut answers = self.ask_all(both, limit).await?;
        answers.pop().unwrap_or_else(|| {
            let what = "a call got no reply";
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, what).into())
        })
    }

    /// Sends a command and a call of a script directly one after the other, and returns
    /// both replies. The script is loaded before both if the server may not have it.
    pub(crate) async fn ask_then_run(
        &self,
        first: &Cmd,
        then: &Call<'_>,
        limit: Duration,
    ) -> RedisResult<(RedisResult<Value>, RedisResult<Value>)> {
        let (mut one, mut other) = (self.conn.clone(), self.conn.clone());
        let all = async {
            let asking = first.query_async(&mut one);
            let calling = then.by_digest().query_async(&mut other);
            tokio::join!(biased; self.load(then.script()), asking, calling)
        };
        let all = self.progress.within(limit, all).await;
        let ((), first, called) = all.map_err(io::Error::from)?;
        self.scripts.heard(then.script(), &called);
        Ok((first, called))
    }

    /// Loads a script, unless the server is known to have it. If the server refuses, the
    /// call behind it finds out whether the server has the script.
    async fn load(&self, script: &Script) {
        if self.scripts.has(script) {
            return;
        }
        let mut conn = self.conn.clone();
        let loaded: RedisResult<Value> = script.loading().query_async(&mut conn).await;
        if let Err(error) = loaded {
            tracing::debug!(?script, %error, "the script was not loaded");
        }
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
