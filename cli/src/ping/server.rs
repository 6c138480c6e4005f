//! The program that keeps the jobs, and its version.

use std::fmt;

use relq::QueueName;
use serde::Serialize;

use crate::{failure::CommandResult, printable::printable};

/// A server of Redis, or the library SQLite.
#[derive(Serialize)]
pub(super) struct Server {
    /// The name of the program; `None` if the server does not say.
    name: Option<&'static str>,
    version: Option<String>,
    /// Whether the server writes an append-only file; `None` for a store that is no server,
    /// and if the server does not say.
    append_only_file: Option<bool>,
}

/// Reads what keeps the jobs of the store at `url`.
pub(super) async fn read(url: &str, queue: &QueueName) -> CommandResult<Server> {
    #[cfg(any(feature = "sqlite", feature = "sqlite-unbundled"))]
    if url.starts_with("sqlite:") {
        let version = Some(relq::sqlite::sqlite_version().to_owned());
        return Ok(Server { name: Some("SQLite"), version, append_only_file: None });
    }
    of_redis(url, queue).await
}

#[cfg(feature = "redis")]
async fn of_redis(url: &str, queue: &QueueName) -> CommandResult<Server> {
    let check = relq::redis::check_server(url, queue).await?;
    let (name, version) = check.program.map(|it| (it.name, it.version)).unzip();
    Ok(Server { name, version, append_only_file: check.has_append_only_file })
}

#[cfg(not(feature = "redis"))]
async fn of_redis(url: &str, _: &QueueName) -> CommandResult<Server> {
    unreachable!("no backend of this program opens {url}")
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        write!(f, "{} {}", self.name.unwrap_or("a server"), printable(version))?;
        if self.append_only_file == Some(false) {
            write!(f, " without an append-only file")?;
        }
        Ok(())
    }
}
