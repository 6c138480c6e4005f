//! The Redis server that the benchmark measures: the user's server, or a private one.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use redis::{AsyncConnectionConfig, aio::MultiplexedConnection};
use relq_fault_proxy::server::{GuardedProcess, is_not_found};
use tempfile::TempDir;

use crate::{
    failure::{CommandResult, Failure},
    meter::failed,
};

/// How long a private server may take to start.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How a server stores its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Data is kept in memory only.
    Memory,
    /// Data is written to a log, which is synced every second.
    EverySecond,
    /// Data is written to a log, which is synced before each reply.
    Always,
}

impl Durability {
    fn settings(self) -> [&'static str; 6] {
        let (log, sync) = match self {
            Self::Memory => ("no", "no"),
            Self::EverySecond => ("yes", "everysec"),
            Self::Always => ("yes", "always"),
        };
        ["--appendonly", log, "--appendfsync", sync, "--save", ""]
    }
}

/// The Redis server on which backends are measured.
#[derive(Debug)]
pub(crate) struct Server {
    /// The server's URL, without a backend's name and without a database.
    base: String,
    database: u32,
    /// The process of a private server, which ends when this value is dropped. `None`
    /// for the user's server.
    private: Option<Private>,
}

/// The process of a private server. It ends when this value is dropped, or when the
/// benchmark is killed.
#[derive(Debug)]
struct Private {
    process: GuardedProcess,
    /// The folder of the server's log, which is removed with this value.
    _folder: TempDir,
}

impl Drop for Private {
    fn drop(&mut self) {
        // Ignore an error: the server may have ended already, and its data is not
        // needed.
        let _ = self.process.kill();
    }
}

impl Server {
    /// Uses the user's server at this URL. The URL may begin with the name of a
    /// backend.
    pub(crate) fn at(url: &str) -> CommandResult<Self> {
        let address = url.split_once('+').map_or(url, |(_backend, rest)| rest);
        let unusable = || {
            Failure::Usage(
                "the benchmark compares backends on a Redis server: give a --url such \
                 as redis://127.0.0.1:6379/0"
                    .to_owned(),
            )
        };
        let (scheme, rest) = address.split_once("://").ok_or_else(unusable)?;
        if !["redis", "rediss"].contains(&scheme) {
            return Err(unusable());
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let database = if path.is_empty() { Ok(0) } else { path.parse() }
            .map_err(|_| unusable())?;
        Ok(Self { base: format!("{scheme}://{host}"), database, private: None })
    }

    /// Starts a private server on a free port.
    pub(crate) async fn start(durability: Durability) -> CommandResult<Self> {
        Self::start_with(&durability.settings()).await
    }

    /// Starts a private server that keeps its data in memory, as a node of a cluster
    /// that has no other node and no slot yet.
    pub(crate) async fn start_node() -> CommandResult<Self> {
        let bus = free_port()?.to_string();
        let cluster = ["--cluster-enabled", "yes", "--cluster-port", &bus];
        Self::start_with(&[&cluster[..], &Durability::Memory.settings()].concat()).await
    }

    async fn start_with(settings: &[&str]) -> CommandResult<Self> {
        let folder = TempDir::with_prefix("relq-bench-").map_err(|error| {
            Failure::Failed(format!("no temporary folder can be made: {error}"))
        })?;
        let port = free_port()?;
        let process = spawn(port, settings, folder.path())?;
        let mut server = Self {
            base: format!("redis://127.0.0.1:{port}"),
            database: 0,
            private: Some(Private { process, _folder: folder }),
        };
        server.wait_until_up().await?;
        Ok(server)
    }

    /// Returns the URL with which a backend opens the given database of this server.
    pub(crate) fn url_of(&self, backend: &str, database: u32) -> String {
        format!("{backend}+{}/{database}", self.base)
    }

    /// The host and port of the server.
    pub(crate) fn address(&self) -> &str {
        self.base.split_once("://").map_or(&self.base, |(_scheme, host)| host)
    }

    /// The number of the database in the server's URL.
    pub(crate) fn database(&self) -> u32 {
        self.database
    }

    /// Opens a connection that has no time limit for commands that block.
    pub(crate) async fn connect(&self) -> CommandResult<MultiplexedConnection> {
        let url = format!("{}/{}", self.base, self.database);
        let client = redis::Client::open(url).map_err(|error| failed(&error))?;
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let conn = client.get_multiplexed_async_connection_with_config(&config).await;
        conn.map_err(|error| failed(&error))
    }

    /// The server's name and version.
    pub(crate) async fn version(&self) -> CommandResult<String> {
        let info: String = redis::cmd("INFO")
            .arg("server")
            .query_async(&mut self.connect().await?)
            .await
            .map_err(|error| failed(&error))?;
        let mut lines = info.lines();
        let version = lines.find_map(|line| line.strip_prefix("redis_version:"));
        Ok(format!("Redis {}", version.unwrap_or("of unknown version")))
    }

    /// Describes in words which data survives a crash of the server.
    pub(crate) async fn durability(&self) -> CommandResult<String> {
        let mut conn = self.connect().await?;
        let mut settings = Vec::new();
        for name in ["appendonly", "appendfsync", "save"] {
            let mut ask = redis::cmd("CONFIG");
            ask.arg("GET").arg(name);
            let answer: Vec<String> = match ask.query_async(&mut conn).await {
                Ok(answer) => answer,
                // Managed Redis servers refuse `CONFIG GET`.
                Err(_) => return Ok("not told by the server".to_owned()),
            };
            settings.push(answer.into_iter().nth(1).unwrap_or_default());
        }
        Ok(match &settings[..] {
            [log, sync, _] if log == "yes" => format!("appendonly, fsync {sync}"),
            [_, _, save] if save.is_empty() => "memory only".to_owned(),
            [_, _, save] => format!("snapshots ({save})"),
            _ => "not told by the server".to_owned(),
        })
    }

    /// Returns the number of the server's last database, for the backend that needs a
    /// whole database. Returns `None` if that database is not empty.
    pub(crate) async fn empty_database(&self) -> CommandResult<Option<u32>> {
        let mut conn = self.connect().await?;
        let mut ask = redis::cmd("CONFIG");
        ask.arg("GET").arg("databases");
        let answer: Vec<String> = ask.query_async(&mut conn).await.unwrap_or_default();
        let databases = answer.get(1).and_then(|number| number.parse::<u32>().ok());
        let Some(last) = databases.unwrap_or(1).checked_sub(1).filter(|last| *last > 0)
        else {
            return Ok(None);
        };
        let other = Self { base: self.base.clone(), database: last, private: None };
        let size: Result<u64, _> = redis::cmd("DBSIZE")
            .query_async(&mut Box::pin(other.connect()).await?)
            .await;
        Ok(size.ok().filter(|size| *size == 0).map(|_| last))
    }

    async fn wait_until_up(&mut self) -> CommandResult {
        let began = Instant::now();
        loop {
            match self.connect().await {
                Ok(_) => return Ok(()),
                Err(error) if began.elapsed() > START_LIMIT => return Err(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            self.check()?;
        }
    }

    /// Returns an error if the private server has ended.
    fn check(&mut self) -> CommandResult {
        let Some(private) = &mut self.private else { return Ok(()) };
        match private.process.try_wait() {
            Ok(Some(status)) => Err(ended_at_once(status)),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

fn free_port() -> CommandResult<u16> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let port = listener.and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(|error| {
        Failure::Failed(format!("no port is free for a server: {error}"))
    })
}

fn spawn(port: u16, settings: &[&str], folder: &Path) -> CommandResult<GuardedProcess> {
    let mut server = Command::new("redis-server");
    server
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
        .args(settings)
        .arg("--dir")
        .arg(folder);
    GuardedProcess::start(&server, folder).map_err(|error| {
        Failure::Failed(format!("redis-server cannot be started: {error}"))
    })
}

fn ended_at_once(status: ExitStatus) -> Failure {
    let why = match is_not_found(status) {
        true => "it is not installed".to_owned(),
        false => format!("it ended at once ({status})"),
    };
    Failure::Failed(format!(
        "redis-server cannot be started: {why}; install it, or name a server with --url"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_taken_out_of_any_backends_url() {
        for url in ["redis://:p@host:1/2", "zset+redis://:p@host:1/2"] {
            let server = Server::at(url).unwrap();
            assert_eq!(server.url_of("circular", 3), "circular+redis://:p@host:1/3");
            assert_eq!(server.database(), 2);
        }
        for url in ["sqlite:jobs.db", "redis://host/x", "host"] {
            assert!(matches!(Server::at(url), Err(Failure::Usage(_))), "{url}");
        }
    }
}
