//! One open connection. It wraps the client library's connection and records when bytes
//! move on the socket.

use std::{
    fmt, io,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, FromRedisValue, Pipeline, PushInfo,
    RedisConnectionInfo, RedisError, RedisResult, Value, aio::MultiplexedConnection,
};
use tokio::{
    sync::{Semaphore, mpsc::UnboundedSender},
    task::AbortHandle,
    time::timeout,
};

use crate::{
    Call, RedisConfig, Script, error,
    progress::{Progress, Watched},
    script::KnownScripts,
    socket::{self, Socket},
    topology::{Address, Topology},
};

/// A connection that the calls of many tasks of one runtime share. It is closed when
/// the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) conn: MultiplexedConnection,
    pub(crate) progress: Arc<Progress>,
    pub(crate) scripts: KnownScripts,
    driver: Arc<Driver>,
    /// Whether this client knows that the queue's marker exists (R25).
    is_marked: Arc<AtomicBool>,
    /// Whether new calls must use another connection.
    is_retired: Arc<AtomicBool>,
}

/// A handle that can close a connection and does not keep it open.
pub(crate) struct WeakLink {
    driver: Weak<Driver>,
    is_retired: Arc<AtomicBool>,
}

impl WeakLink {
    /// Closes the connection: the calls on it fail.
    pub(crate) fn close(&self) {
        if let Some(driver) = self.driver.upgrade() {
            driver.0.abort();
        }
    }

    /// Lets new calls use another connection. Those under way still get their replies.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.driver.upgrade().is_some_and(|driver| !driver.0.is_finished())
    }
}

/// The task that reads from the socket and writes to it. Dropping this value stops it.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Link {
    /// Connects. The caller's runtime drives the connection.
    pub(crate) async fn open(config: &RedisConfig) -> Result<Self, RedisError> {
        let opened = timeout(config.connect_timeout, Self::find(config)).await;
        opened.unwrap_or_else(|late| Err(unreached(config, &late.into())))
    }

    /// Connects to the server of the queue: the one in the URL, or the one that
    /// sentinels or a cluster name.
    async fn find(config: &RedisConfig) -> Result<Self, RedisError> {
        match &config.topology {
            Topology::Server => {
                let socket = socket::connect(config.info.addr(), &config.tls).await;
                let socket = socket.map_err(|error| unreached(config, &error))?;
                Self::on(socket, config.info.redis_settings(), None).await
            }
            Topology::Sentinels(sentinels) => sentinels.connect(config).await,
            Topology::Cluster(cluster) => cluster.connect(config).await,
        }
    }

    /// Connects to one of several servers, with the user and password of `settings`.
    /// The caller must set a time limit.
    pub(crate) async fn connect(
        config: &RedisConfig,
        server: &Address,
        settings: &RedisConnectionInfo,
    ) -> Result<Self, RedisError> {
        Self::to(config, server, settings, None).await
    }

    /// Connects as [`connect`](Self::connect) does. The messages of the channels that the
    /// connection subscribes to go to `pushes`, and so does the end of the connection.
    pub(crate) async fn subscribing(
        config: &RedisConfig,
        server: &Address,
        settings: &RedisConnectionInfo,
        pushes: UnboundedSender<PushInfo>,
    ) -> Result<Self, RedisError> {
        Self::to(config, server, settings, Some(pushes)).await
    }

    async fn to(
        config: &RedisConfig,
        server: &Address,
        settings: &RedisConnectionInfo,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<Self, RedisError> {
        let connecting = socket::connect_like(config.info.addr(), server, &config.tls);
        let socket = connecting.await.map_err(|error| unreached(server, &error))?;
        Self::on(socket, settings, pushes).await
    }

    async fn on(
        socket: Socket,
        redis: &RedisConnectionInfo,
        pushes: Option<UnboundedSender<PushInfo>>,
    ) -> Result<Self, RedisError> {
        let (stream, progress) = Watched::new(socket);
        // Sending must never wait for buffer space. If a future waited for it and was
        // not polled any more, it would block all other calls.
        let mut settings = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_pipeline_buffer_size(Semaphore::MAX_PERMITS);
        if let Some(pushes) = pushes {
            settings = settings.set_push_sender(pushes);
        }
        let (conn, driver) =
            MultiplexedConnection::new_with_config(redis, stream, settings).await?;
        let driver = Driver(tokio::spawn(driver.boxed()).abort_handle());
        Ok(Self {
            conn,
            progress,
            scripts: KnownScripts::default(),
            driver: Arc::new(driver),
            is_marked: Arc::default(),
            is_retired: Arc::default(),
        })
    }

    pub(crate) fn downgrade(&self) -> WeakLink {
        let driver = Arc::downgrade(&self.driver);
        WeakLink { driver, is_retired: Arc::clone(&self.is_retired) }
    }

    /// Whether this client knows that the queue's marker exists (R25).
    pub(crate) fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Acquire)
    }

    pub(crate) fn set_marked(&self, is_marked: bool) {
        self.is_marked.store(is_marked, Ordering::Release);
    }

    /// Whether this client believes that calls can be sent on the connection.
    pub(crate) fn is_open(&self) -> bool {
        !self.driver.0.is_finished() && !self.is_retired.load(Ordering::Acquire)
    }

    /// Retires the connection if `error` says that another one may work better. New
    /// calls then use another connection. Calls under way still wait for their replies,
    /// so the connection is closed only if it is broken.
    pub(crate) fn heed(&self, error: &RedisError) {
        if !error::condemns_connection(error) {
            return;
        }
        self.is_retired.store(true, Ordering::Release);
        if error.code().is_none() {
            self.driver.0.abort();
        }
    }

    /// Sends one command and returns its reply. The first poll of this future sends the
    /// command. Fails once the connection was silent for `limit`.
    pub(crate) async fn ask<T: FromRedisValue>(
        &mut self,
        cmd: &Cmd,
        limit: Duration,
    ) -> Result<T, RedisError> {
        let answer = cmd.query_async(&mut self.conn);
        let answer = self.progress.within(limit, answer).await;
        answer.unwrap_or_else(|silence| Err(io::Error::from(silence).into()))
    }

    /// Sends several commands in one write. Returns the reply to each.
    pub(crate) fn ask_all(
        &mut self,
        mut asking: Pipeline,
        limit: Duration,
    ) -> BoxFuture<'_, RedisResult<Vec<RedisResult<Value>>>> {
        // An error reply to one command must not hide the replies to the others.
        asking.ignore_errors();
        let all = async move {
            let answers = asking.query_async(&mut self.conn);
            let answers = self.progress.within(limit, answers).await;
            answers.unwrap_or_else(|silence| Err(io::Error::from(silence).into()))
        };
        all.boxed()
    }

    /// Calls a script. If the server may not have the script, a command that loads it
    /// is sent in the same write, before the call. The first poll of this future sends
    /// both.
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

    /// Sends the command that loads the script, and then the call. If the server
    /// refuses to load the script, the reply to the call says whether the server has
    /// it.
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

    /// Loads a script, unless the server is known to have it. A refusal is ignored: the
    /// reply to the call that follows says whether the server has the script.
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

/// Returns the error of a connection that could not be opened. It contains the server's
/// address, which the system's error lacks.
fn unreached(server: &dyn fmt::Display, error: &io::Error) -> RedisError {
    let text = format!("{server}: {error}");
    match error.kind() {
        // A setting of this process is wrong, so it has not connected to any server.
        io::ErrorKind::InvalidInput => {
            (ErrorKind::InvalidClientConfig, error::MISCONFIGURED, text).into()
        }
        kind => io::Error::new(kind, text).into(),
    }
}
