//! Connections that reconnect by themselves, one for each runtime that calls.
//!
//! The calls of many tasks share a connection, so their commands share writes and
//! reads. When the connection breaks, every call under way fails with an error that
//! says it may have happened. The next call opens a new connection first. If that
//! fails, its error says that nothing was sent. relq never repeats a command by itself
//! (R4, R21).
//!
//! A connection is driven by tasks of the runtime that opened it. If all threads of
//! that runtime are blocked, or if no thread runs it at the moment, only its own calls
//! are delayed. A call never depends on the future of another call, because that future
//! may be polled once and then kept: connecting is a task, and sending a command never
//! waits for buffer space.

use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use redis::{Cmd, ErrorKind, RedisError, Value};
use relq_core::{
    Error, QueueName,
    environment::Environment,
    error::{ErrorContext, Operation},
};
use tokio::runtime::{self, Handle};

use crate::{
    Call, Owner, RedisConfig, Reply, Script, error, link::Link, opening::Opening,
    owner::is_write, server_info::ServerInfo, wrong_type,
};

/// The connections of one opened queue. Clones share them.
#[derive(Clone)]
pub struct Conn(Arc<Inner>);

struct Inner {
    backend: &'static str,
    /// The owner to check, if the calls are for one queue.
    owner: Option<Owner>,
    /// The scripts that calls may send.
    scripts: Arc<[&'static Script]>,
    config: RedisConfig,
    is_in_cluster: bool,
    by_runtime: Mutex<Vec<(runtime::Id, State)>>,
}

/// The connection of one runtime: open, or being opened.
#[derive(Clone)]
enum State {
    Open(Link),
    Connecting(Connecting),
}

/// An attempt to connect. All calls that wait for it get its result: a hundred calls to
/// an unreachable server take one timeout, not a hundred.
type Connecting = Shared<BoxFuture<'static, Result<Link, RedisError>>>;

/// Why a command has no reply.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// There was no connection to send the command on.
    BeforeSend(RedisError),
    AfterSend(RedisError),
}

impl Failed {
    /// The task that sent the command ended without a reply: the command may have run.
    pub(crate) fn unheard() -> Self {
        let lost = io::Error::other("the task that sent the command ended");
        Self::AfterSend(lost.into())
    }

    /// The error that the caller gets.
    pub(crate) fn at(self, at: ErrorContext) -> Error {
        match self {
            Self::BeforeSend(error) => error::before_send(at, error),
            Self::AfterSend(error) => error::after_send(at, error),
        }
    }
}

impl Conn {
    /// Connects, and checks that the server is one that relq works on. The calls are
    /// not for one queue, or they are an operator's.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the server cannot be reached, [`Error::Denied`]
    /// when it refuses the user, [`Error::WrongServer`] for a sentinel, and
    /// [`Error::Unusable`] when it is too old or the database does not exist.
    pub async fn open(
        backend: &'static str,
        config: RedisConfig,
    ) -> Result<Self, Error> {
        Self::open_with(backend, None, Arc::default(), config).await
    }

    /// As [`open`](Self::open), for the calls of one queue, which may send `scripts`.
    /// Each connection reads the queue's marker before a call uses it, and a call that
    /// changes the queue first makes sure that the marker is written (R25).
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Unusable`] when another backend owns the
    /// queue.
    pub async fn open_queue(
        owner: Owner,
        config: RedisConfig,
        scripts: impl IntoIterator<Item = &'static Script>,
    ) -> Result<Self, Error> {
        let scripts = scripts.into_iter().collect();
        Self::open_with(owner.backend, Some(owner), scripts, config).await
    }

    async fn open_with(
        backend: &'static str,
        owner: Option<Owner>,
        scripts: Arc<[&'static Script]>,
        config: RedisConfig,
    ) -> Result<Self, Error> {
        let at = ErrorContext { backend, operation: Operation::Connect };
        let opening = Opening::of_calls(owner.as_ref(), &scripts);
        let opened = opening.open_first(&config).await;
        let (link, info) = opened.map_err(|error| error::before_send(at, error))?;
        let info = info.map_err(|error| error::after_send(at, error))?;
        let info = ServerInfo::read(&info);
        info.check(at)?;
        warn_of_eviction(info.evicts_by(), &config);
        let is_in_cluster = info.is_in_cluster();
        let by_runtime = vec![(Handle::current().id(), State::Open(link))].into();
        let inner =
            Inner { backend, owner, scripts, config, is_in_cluster, by_runtime };
        Ok(Self(Arc::new(inner)))
    }

    /// A new set of connections to the same server.
    ///
    /// # Errors
    /// As [`Conn::open`].
    pub async fn open_another(&self) -> Result<Self, Error> {
        let Inner { backend, owner, scripts, config, .. } = &*self.0;
        Self::open_with(backend, owner.clone(), scripts.clone(), config.clone()).await
    }

    /// Sends one command and returns its reply.
    ///
    /// # Errors
    /// The error says whether the command certainly did not happen or may have happened
    /// (R21).
    pub async fn call(&self, operation: Operation, cmd: &Cmd) -> Result<Reply, Error> {
        let at = self.at(operation);
        match self.send(operation, cmd).await {
            Ok(value) => Ok(Reply::new(at, value)),
            Err(failed) => Err(failed.at(at)),
        }
    }

    /// Calls a script and returns its reply. The call is not sent again if the server
    /// has lost the script.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub(crate) async fn run(
        &self,
        operation: Operation,
        call: &Call<'_>,
    ) -> Result<Reply, Error> {
        let at = self.at(operation);
        let running = async {
            let mut link =
                self.link_for(operation).await.map_err(Failed::BeforeSend)?;
            let answer = link.run(call, self.response_timeout()).await;
            self.judged(link, answer).await
        };
        let value = running.await.map_err(|failed: Failed| failed.at(at))?;
        Ok(Reply::new(at, value))
    }

    /// As [`call`](Self::call), for callers that share one error.
    pub(crate) async fn send(
        &self,
        operation: Operation,
        cmd: &Cmd,
    ) -> Result<Value, Failed> {
        let link = self.link_for(operation).await.map_err(Failed::BeforeSend)?;
        self.send_on(link, cmd).await
    }

    /// Sends one command on an open connection. The command is sent once this future
    /// was polled.
    pub(crate) async fn send_on(
        &self,
        mut link: Link,
        cmd: &Cmd,
    ) -> Result<Value, Failed> {
        let answer = link.ask(cmd, self.response_timeout()).await;
        self.judged(link, answer).await
    }

    /// The result of a call on that connection. An error may retire the connection, and
    /// one about the type of a key is completed by the key's name.
    async fn judged(
        &self,
        link: Link,
        answer: Result<Value, RedisError>,
    ) -> Result<Value, Failed> {
        let error = match answer {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        link.heed(&error);
        Err(Failed::AfterSend(match &self.0.owner {
            Some(owner) if wrong_type::is_meant(&error) => {
                wrong_type::named(error, owner, link, self.response_timeout()).await
            }
            _ => error,
        }))
    }

    /// Checks the queue's marker again, and rewrites it if it is missing. A call that
    /// cleans up after other clients does this before it changes anything (R25).
    ///
    /// # Errors
    /// [`Error::Unusable`] when another backend owns the queue by now.
    pub async fn confirm_owner(&self, operation: Operation) -> Result<(), Error> {
        let Some(owner) = &self.0.owner else { return Ok(()) };
        let confirming = async {
            let link = self.link().await?;
            self.mark(owner, link).await
        };
        let confirmed = confirming.await;
        confirmed.map_err(|failed| error::before_send(self.at(operation), failed))
    }

    /// Takes another queue for the same backend, so that this client may change it: writes
    /// its marker, or checks it (R25).
    ///
    /// # Errors
    /// [`Error::Unusable`] when another backend owns that queue.
    pub async fn take_ownership(
        &self,
        operation: Operation,
        queue: QueueName,
    ) -> Result<(), Error> {
        let Some(owner) = &self.0.owner else { return Ok(()) };
        let writing = async {
            let link = self.link().await?;
            self.write_marker(&owner.of(queue), link).await
        };
        let written = writing.await;
        written.map_err(|failed| error::before_send(self.at(operation), failed))
    }

    /// Whether this runtime has a connection that is not known to be broken. If not, the
    /// next call connects first.
    pub fn is_connected(&self) -> bool {
        Handle::try_current().is_ok_and(|runtime| {
            matches!(self.0.state(runtime.id()), Some(State::Open(_)))
        })
    }

    /// Whether the server was a node of a Redis Cluster when it was first connected to.
    pub fn is_in_cluster(&self) -> bool {
        self.0.is_in_cluster
    }

    /// The time and randomness that the queue runs on.
    pub fn environment(&self) -> &Environment {
        &self.0.config.environment
    }

    /// The context for errors: the backend and its current operation.
    pub fn at(&self, operation: Operation) -> ErrorContext {
        ErrorContext { backend: self.0.backend, operation }
    }

    /// How long a call waits for a connection on which nothing moves.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.0.config.response_timeout
    }

    /// A connection outside the shared one, for commands that block.
    pub(crate) async fn open_blocking(&self) -> Result<Link, Error> {
        let Inner { owner, scripts, config, .. } = &*self.0;
        let opening = Opening::of_a_wait(owner.as_ref(), scripts);
        let opened = opening.open(config).await;
        opened.map_err(|error| error::before_send(self.at(Operation::Claim), error))
    }

    /// The connection of this runtime.
    pub(crate) async fn link(&self) -> Result<Link, RedisError> {
        let runtime = Handle::current();
        match self.0.state_or_connect(&runtime) {
            State::Open(link) => Ok(link),
            State::Connecting(outcome) => outcome.await,
        }
    }

    /// The connection of this runtime for a call of that kind. If the call changes the
    /// queue, the marker is written first (R25).
    pub(crate) async fn link_for(
        &self,
        operation: Operation,
    ) -> Result<Link, RedisError> {
        let link = self.link().await?;
        if let Some(owner) = &self.0.owner
            && is_write(operation)
            && !link.is_marked()
        {
            self.mark(owner, link.clone()).await?;
        }
        Ok(link)
    }

    /// Writes the marker, or checks it. If that fails, the connection no longer counts
    /// as marked.
    async fn mark(&self, owner: &Owner, link: Link) -> Result<(), RedisError> {
        let marked = self.write_marker(owner, link.clone()).await;
        link.set_marked(marked.is_ok());
        marked
    }

    async fn write_marker(
        &self,
        owner: &Owner,
        mut link: Link,
    ) -> Result<(), RedisError> {
        let Link { conn, progress, .. } = &mut link;
        let writing = owner.write(conn, &self.0.config);
        let written = progress.within(self.response_timeout(), writing).await;
        let written = written.unwrap_or_else(|late| Err(io::Error::from(late).into()));
        written.inspect_err(|failed| {
            let is_answer = failed.kind() == ErrorKind::InvalidClientConfig;
            if !is_answer {
                link.heed(failed);
            }
        })
    }
}

impl Inner {
    /// The connection of a runtime, if it has one that is not closed.
    fn state(&self, runtime: runtime::Id) -> Option<State> {
        let states = lock(&self.by_runtime);
        let (_, state) = states.iter().find(|(id, _)| *id == runtime)?;
        state.if_usable()
    }

    fn state_or_connect(self: &Arc<Self>, runtime: &Handle) -> State {
        if let Some(state) = self.state(runtime.id()) {
            return state;
        }
        let mut states = lock(&self.by_runtime);
        // This also drops the connections of runtimes that have ended.
        states.retain(|(_, state)| state.if_usable().is_some());
        if let Some((_, state)) = states.iter().find(|(id, _)| *id == runtime.id()) {
            return state.clone();
        }
        let connecting = self.connect(runtime.id());
        // Connecting is a task, so it continues even if its callers are dropped.
        runtime.spawn(connecting.clone());
        let state = State::Connecting(connecting);
        states.push((runtime.id(), state.clone()));
        state
    }

    fn connect(self: &Arc<Self>, runtime: runtime::Id) -> Connecting {
        let (config, owner) = (self.config.clone(), self.owner.clone());
        let scripts = self.scripts.clone();
        let inner = Arc::downgrade(self);
        let attempt = async move {
            let opening = Opening::of_calls(owner.as_ref(), &scripts);
            let outcome = opening.open(&config).await;
            Self::connected(&inner, runtime, outcome.as_ref().ok());
            outcome
        };
        attempt.boxed().shared()
    }

    /// Stores the opened connection. After a failure the next call tries again.
    fn connected(inner: &Weak<Self>, runtime: runtime::Id, link: Option<&Link>) {
        let Some(inner) = inner.upgrade() else { return };
        let mut states = lock(&inner.by_runtime);
        states.retain(|(id, _)| *id != runtime);
        states.extend(link.map(|link| (runtime, State::Open(link.clone()))));
    }
}

impl State {
    fn if_usable(&self) -> Option<Self> {
        let is_usable = match self {
            Self::Open(link) => link.is_open(),
            // The connecting task keeps a clone of this future until its runtime ends.
            // A count of one means that the runtime has ended.
            Self::Connecting(outcome) => outcome.strong_count() > Some(1),
        };
        is_usable.then(|| self.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a command.
pub fn command(name: &'static str) -> Cmd {
    redis::cmd(name)
}

fn warn_of_eviction(policy: Option<&str>, config: &RedisConfig) {
    if let Some(policy) = policy {
        tracing::warn!(
            server = %config,
            policy,
            "the server's maxmemory-policy may evict jobs: set it to noeviction",
        );
    }
}

impl fmt::Display for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.config.fmt(f)
    }
}

impl fmt::Debug for Conn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Conn({self})")
    }
}
