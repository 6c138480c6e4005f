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
//!
//! The public calls return boxed futures. The compiler builds the state machine of an
//! `async fn` in each crate that awaits it, together with those of the client library
//! below it. A box keeps them in this crate, for one allocation per command. The
//! futures of tasks are boxed too, so that all tasks share the code that tokio has for
//! a type of future.

mod all_steps;
mod by_runtime;
mod confirmed;
mod failed;
mod marked;
mod redirected;
mod server_time;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{Cmd, RedisError, RedisResult, Value};
use relq_core::{
    Error,
    environment::Environment,
    error::{ErrorContext, Operation},
};
use tokio::runtime::{self, Handle};

pub use self::all_steps::all_steps;
use self::{by_runtime::State, redirected::Request};
pub(crate) use self::{confirmed::Replication, failed::Failed};
use crate::{
    Call, Owner, RedisConfig, Reply, Script, error,
    link::Link,
    opening::{First, Opening},
    server_info::ServerInfo,
    topology::until_settled,
    wrong_type,
};

/// The connections of one opened queue, one per runtime. Clones share them.
#[derive(Clone)]
pub struct Conn(Arc<Inner>);

struct Inner {
    backend: &'static str,
    /// The owner to check on each new connection, if the calls are for one queue.
    owner: Option<Owner>,
    /// The scripts that calls may send, so that a new connection asks which of them the
    /// server has.
    scripts: Arc<[&'static Script]>,
    config: RedisConfig,
    is_in_cluster: bool,
    by_runtime: Mutex<Vec<(runtime::Id, State)>>,
    /// The connections for calls that wait for replicas, if the URL asks for replicas.
    confirmed: Option<Conn>,
    /// The replicas that each call on these connections waits for. `None` if it waits for
    /// none.
    replication: Option<Replication>,
    first_look: Mutex<Option<RedisResult<Value>>>,
}

impl Conn {
    /// Connects, and checks that relq works on the server. Use it for calls that are
    /// not for one queue, and for an operator's calls.
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

    /// Connects for the calls of one queue, which may send `scripts`. Each connection
    /// reads the queue's marker before a call uses it, and a call that changes the
    /// queue first makes sure that the marker is written (R25).
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), and [`Error::Unusable`] when another backend
    /// owns the queue.
    pub async fn open_queue(
        owner: Owner,
        config: RedisConfig,
        scripts: impl IntoIterator<Item = &'static Script>,
    ) -> Result<Self, Error> {
        let scripts = scripts.into_iter().collect();
        Self::open_with(owner.backend, Some(owner), scripts, config).await
    }

    fn open_with(
        backend: &'static str,
        owner: Option<Owner>,
        scripts: Arc<[&'static Script]>,
        config: RedisConfig,
    ) -> BoxFuture<'static, Result<Self, Error>> {
        let opening = async move {
            let at = ErrorContext { backend, operation: Operation::Connect };
            let config = match &owner {
                Some(owner) => config.for_queue(&owner.keys),
                None => config,
            };
            let opening = Opening::of_calls(owner.as_ref(), &scripts);
            let opened = until_settled(&config, || opening.open_first(&config)).await;
            let First { link, info, look } =
                opened.map_err(|error| error::before_send(at, error))?;
            let info = info.map_err(|error| error::after_send(at, error))?;
            let info = ServerInfo::read(&info);
            info.check(at)?;
            warn_of_eviction(info.evicts_by(), &config);
            let is_in_cluster = info.is_in_cluster();
            let by_runtime = vec![(Handle::current().id(), State::Open(link))].into();
            let mut inner = Inner {
                backend,
                owner,
                scripts,
                config,
                is_in_cluster,
                by_runtime,
                confirmed: None,
                replication: None,
                first_look: look.into(),
            };
            inner.confirmed = inner.confirming();
            Ok(Self(Arc::new(inner)))
        };
        opening.boxed()
    }

    /// Opens new connections to the same server, for the same queue and scripts.
    ///
    /// # Errors
    /// The errors of [`Conn::open`].
    pub async fn open_another(&self) -> Result<Self, Error> {
        let Inner { backend, owner, scripts, config, .. } = &*self.0;
        let owner = owner.clone().map(Owner::without_first_look);
        Self::open_with(backend, owner, scripts.clone(), config.clone()).await
    }

    /// The reply to the command of [`Owner::first_look`], the first time that this is
    /// called. `None` if there is no such command.
    ///
    /// # Errors
    /// The error with which the server refused the command.
    pub fn take_first_look(&self) -> Result<Option<Reply>, Error> {
        let look =
            self.0.first_look.lock().unwrap_or_else(PoisonError::into_inner).take();
        let at = self.at(Operation::Connect);
        let look = look.transpose().map_err(|error| error::after_send(at, error))?;
        Ok(look.map(|value| Reply::new(at, value)))
    }

    /// Sends one command and returns its reply.
    ///
    /// # Errors
    /// The error says whether the command certainly did not happen or may have happened
    /// (R21).
    pub fn call<'a>(
        &'a self,
        operation: Operation,
        cmd: &'a Cmd,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        let calling = async move {
            let at = self.at(operation);
            match self.send(operation, cmd).await {
                Ok(value) => Ok(Reply::new(at, value)),
                Err(failed) => Err(failed.at(at)),
            }
        };
        calling.boxed()
    }

    /// Calls a script and returns its reply. The call is not sent again if the server
    /// has lost the script.
    ///
    /// # Errors
    /// The errors of [`call`](Self::call).
    pub(crate) async fn run(
        &self,
        operation: Operation,
        call: &Call<'_>,
    ) -> Result<Reply, Error> {
        let value = self.try_run(operation, call).await;
        let at = self.at(operation);
        Ok(Reply::new(at, value.map_err(|failed| failed.at(at))?))
    }

    /// Like [`run`](Self::run), but the error can be cloned, for callers that share one
    /// error.
    pub(crate) async fn try_run(
        &self,
        operation: Operation,
        call: &Call<'_>,
    ) -> Result<Value, Failed> {
        let (conn, request) = (self.for_operation(operation), Request::Call(call));
        match conn.attempt(operation, request).await {
            Err(failed) => conn.follow(operation, request, failed).await,
            outcome => outcome,
        }
    }

    /// Sends one command and returns its reply. Its error can be cloned, for callers
    /// that share one command.
    pub(crate) async fn send(
        &self,
        operation: Operation,
        cmd: &Cmd,
    ) -> Result<Value, Failed> {
        let conn = self.for_operation(operation);
        match conn.link_for(operation).await {
            Ok(link) => conn.send_on(link, operation, cmd).await,
            Err(error) => conn.send_elsewhere(operation, cmd, error).await,
        }
    }

    /// Sends one command for which there is no connection because of `error`, if the
    /// error says that another node of the cluster serves the queue. Otherwise returns
    /// the error.
    pub(crate) async fn send_elsewhere(
        &self,
        operation: Operation,
        cmd: &Cmd,
        error: RedisError,
    ) -> Result<Value, Failed> {
        let failed = Failed::BeforeSend(error);
        self.follow(operation, Request::Cmd(cmd), failed).await
    }

    /// Sends one command on an open connection. The first poll of this future sends the
    /// command.
    pub(crate) async fn send_on(
        &self,
        link: Link,
        operation: Operation,
        cmd: &Cmd,
    ) -> Result<Value, Failed> {
        let request = Request::Cmd(cmd);
        match self.attempt_on(link, operation, request).await {
            Err(failed) => self.follow(operation, request, failed).await,
            outcome => outcome,
        }
    }

    /// Checks the result of a call. Some errors make new calls use another connection.
    /// An error about the type of a key gets the names of the wrong keys.
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
            Some(owner) if wrong_type::is_cause(&error) => {
                wrong_type::named(error, owner, link, self.response_timeout()).await
            }
            _ => error,
        }))
    }

    /// Whether the current runtime has a connection that is not known to be broken. If
    /// not, the next call connects first.
    pub fn is_connected(&self) -> bool {
        Handle::try_current().is_ok_and(|runtime| {
            matches!(self.0.state(runtime.id()), Some(State::Open(_)))
        })
    }

    /// Whether the server was a node of a Redis Cluster at the first connection.
    pub fn is_in_cluster(&self) -> bool {
        self.0.is_in_cluster
    }

    /// The sources of time and randomness of the queue.
    pub fn environment(&self) -> &Environment {
        &self.0.config.environment
    }

    /// The context for an error of `operation`, with the name of the backend.
    pub fn at(&self, operation: Operation) -> ErrorContext {
        ErrorContext { backend: self.0.backend, operation }
    }

    /// How long a call waits for a reply on a silent connection.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.0.config.response_timeout
    }

    /// Opens a connection that is not shared with other calls, for commands that block.
    pub(crate) async fn open_blocking(&self) -> Result<Link, Error> {
        let Inner { owner, scripts, config, .. } = &*self.0;
        let opening = Opening::of_a_wait(owner.as_ref(), scripts);
        let opened = until_settled(config, || opening.open(config)).await;
        opened.map_err(|error| error::before_send(self.at(Operation::Claim), error))
    }

    /// The connection of the current runtime, which is opened if necessary.
    pub(crate) async fn link(&self) -> Result<Link, RedisError> {
        let runtime = Handle::current();
        match self.0.state_or_connect(&runtime) {
            State::Open(link) => Ok(link),
            State::Connecting(outcome) => outcome.await,
        }
    }
}

/// Creates a command without arguments.
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
