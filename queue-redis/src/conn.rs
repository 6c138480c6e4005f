//! One multiplexed connection that heals by itself.
//!
//! The calls of many tasks share it, so their commands share writes and reads. When
//! it breaks, every call under way fails and says that it may have happened; the
//! next call opens a new connection first, and if it cannot, says that nothing was
//! sent. relq never repeats a command by itself (R4, R21).

use std::{
    fmt, io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use queue_core::{At, Environment, Error, Operation};
use redis::{
    AsyncConnectionConfig, Client, Cmd, PushInfo, PushKind, RedisError, Value,
    aio::MultiplexedConnection,
};

use crate::{RedisConfig, Reply, error, limit::within};

/// The oldest server that has what the scripts need (`allow-oom`, 7.0).
const MINIMUM_MAJOR_VERSION: u32 = 7;

/// A connection that the calls of many tasks share. Clones share it too.
#[derive(Clone)]
pub struct Conn(Arc<Inner>);

struct Inner {
    backend: &'static str,
    config: RedisConfig,
    client: Client,
    live: Mutex<Option<Live>>,
    /// Held while connecting, so that a broken connection is replaced once.
    connecting: tokio::sync::Mutex<Attempts>,
    /// Failed attempts so far.
    failures: AtomicU64,
}

/// What became of the last attempt to connect, if it failed.
#[derive(Default)]
struct Attempts {
    failure: Option<RedisError>,
}

#[derive(Clone)]
struct Live {
    conn: MultiplexedConnection,
    is_broken: Arc<AtomicBool>,
}

/// Why a command has no answer.
#[derive(Debug, Clone)]
pub(crate) enum Failed {
    /// There was no connection to send it on.
    BeforeSend(RedisError),
    AfterSend(RedisError),
}

impl Failed {
    /// The answer of a command that others shared is not to be had: it may have run.
    pub(crate) fn unheard() -> Self {
        let lost = std::io::Error::other("the command's sender is gone");
        Self::AfterSend(lost.into())
    }

    /// What that means to a caller.
    pub(crate) fn at(self, at: At) -> Error {
        match self {
            Self::BeforeSend(error) => error::before_send(at, error),
            Self::AfterSend(error) => error::after_send(at, error),
        }
    }
}

impl Live {
    fn is_usable(&self) -> bool {
        !self.is_broken.load(Ordering::Acquire)
    }
}

impl Conn {
    /// Connects, and checks that the server is one that relq works on.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the server cannot be reached, [`Error::Denied`]
    /// when it refuses the user, [`Error::Unusable`] when it is too old or the
    /// database does not exist.
    pub async fn open(
        backend: &'static str,
        config: RedisConfig,
    ) -> Result<Self, Error> {
        let at = At { backend, operation: Operation::Connect };
        #[cfg(feature = "tls")]
        crate::tls::choose_cryptography();
        let client = Client::open(config.info.clone())
            .map_err(|error| error::before_send(at, error))?;
        let conn = Self(Arc::new(Inner {
            backend,
            config,
            client,
            live: Mutex::new(None),
            connecting: tokio::sync::Mutex::default(),
            failures: AtomicU64::new(0),
        }));
        conn.check_server().await?;
        Ok(conn)
    }

    /// A connection of its own to the same server.
    ///
    /// # Errors
    /// As [`Conn::open`].
    pub async fn sibling(&self) -> Result<Self, Error> {
        Self::open(self.0.backend, self.0.config.clone()).await
    }

    /// Sends one command and gives its answer.
    ///
    /// # Errors
    /// Says whether the command surely did not happen or may have (R21).
    pub async fn call(&self, operation: Operation, cmd: &Cmd) -> Result<Reply, Error> {
        let at = self.at(operation);
        match self.send(cmd).await {
            Ok(value) => Ok(Reply::new(at, value)),
            Err(failed) => Err(failed.at(at)),
        }
    }

    /// As [`call`](Self::call), for who has to tell several of a failure.
    pub(crate) async fn send(&self, cmd: &Cmd) -> Result<Value, Failed> {
        let mut live = self.live().await.map_err(Failed::BeforeSend)?;
        let answer = within(self.response_timeout(), cmd.query_async(&mut live.conn));
        let answer =
            answer.await.unwrap_or_else(|late| Err(io::Error::from(late).into()));
        answer.map_err(|error: RedisError| {
            if error::condemns_connection(&error) {
                live.is_broken.store(true, Ordering::Release);
            }
            Failed::AfterSend(error)
        })
    }

    /// Whether there is a connection that is not known to be broken. Without one, the
    /// next call connects first.
    pub fn is_connected(&self) -> bool {
        self.usable().is_some()
    }

    /// The time and randomness that the queue runs on.
    pub fn environment(&self) -> &Environment {
        &self.0.config.environment
    }

    /// Names the backend and what it is doing.
    pub fn at(&self, operation: Operation) -> At {
        At { backend: self.0.backend, operation }
    }

    /// How long a call may take before its answer counts as lost.
    pub(crate) fn response_timeout(&self) -> Duration {
        self.0.config.response_timeout
    }

    /// A connection outside the shared one, for commands that block. Its answers
    /// may take as long as they like: the caller sets the limit.
    pub(crate) async fn open_blocking(&self) -> Result<MultiplexedConnection, Error> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.0.config.connect_timeout))
            .set_response_timeout(None);
        self.0
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await
            .map_err(|error| error::before_send(self.at(Operation::Claim), error))
    }

    async fn live(&self) -> Result<Live, RedisError> {
        if let Some(live) = self.usable() {
            return Ok(live);
        }
        let failures = self.0.failures.load(Ordering::Acquire);
        let mut attempts = self.0.connecting.lock().await;
        if let Some(live) = self.usable() {
            return Ok(live);
        }
        // An attempt that failed while this call queued for its own answers for both:
        // a hundred calls to a server that is gone take one time-out, not a hundred.
        if self.0.failures.load(Ordering::Acquire) != failures
            && let Some(failure) = &attempts.failure
        {
            return Err(failure.clone());
        }
        match self.connect().await {
            Ok(live) => {
                *lock(&self.0.live) = Some(live.clone());
                Ok(live)
            }
            Err(failure) => {
                attempts.failure = Some(failure.clone());
                self.0.failures.fetch_add(1, Ordering::AcqRel);
                Err(failure)
            }
        }
    }

    fn usable(&self) -> Option<Live> {
        let live = lock(&self.0.live);
        live.as_ref().filter(|live| live.is_usable()).cloned()
    }

    async fn connect(&self) -> Result<Live, RedisError> {
        let is_broken = Arc::new(AtomicBool::new(false));
        let on_push = Arc::clone(&is_broken);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.0.config.connect_timeout))
            .set_response_timeout(None)
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    on_push.store(true, Ordering::Release);
                }
                Ok::<(), redis::aio::SendError>(())
            });
        let client = &self.0.client;
        let conn = client.get_multiplexed_async_connection_with_config(&config).await?;
        Ok(Live { conn, is_broken })
    }

    async fn check_server(&self) -> Result<(), Error> {
        let mut info = redis::cmd("INFO");
        info.arg("server").arg("memory");
        let info = self.call(Operation::Connect, &info).await?.text()?;
        let field = |name: &str| {
            info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        };
        check_version(self.at(Operation::Connect), field("redis_version"))?;
        warn_of_eviction(field("maxmemory_policy"), self);
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a command.
pub fn command(name: &'static str) -> Cmd {
    redis::cmd(name)
}

fn check_version(at: At, version: Option<&str>) -> Result<(), Error> {
    let version = version.unwrap_or("unknown");
    let major: u32 =
        version.split('.').next().and_then(|part| part.parse().ok()).unwrap_or(0);
    if major < MINIMUM_MAJOR_VERSION {
        let source =
            format!("the server's version is {version}, and 7.0 is the oldest");
        return Err(Error::Unusable { at, source: source.into() });
    }
    Ok(())
}

fn warn_of_eviction(policy: Option<&str>, conn: &Conn) {
    if let Some(policy) = policy.filter(|policy| *policy != "noeviction") {
        tracing::warn!(
            server = %conn.0.config,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(version: &str) -> Result<(), Error> {
        let at = At { backend: "test", operation: Operation::Connect };
        check_version(at, Some(version))
    }

    #[test]
    fn a_server_older_than_7_is_refused_by_its_version() {
        let error = checked("6.2.14").unwrap_err();

        assert!(matches!(error, Error::Unusable { .. }));
        assert!(error.full_message().contains("6.2.14"), "{}", error.full_message());
    }

    #[test]
    fn newer_servers_are_taken() {
        for version in ["7.0.0", "7.0.15", "8.6.3", "10.0.0"] {
            assert!(checked(version).is_ok(), "{version}");
        }
    }
}
