//! Checks of a server that an operator wants to know of before the first job is lost.

use std::time::Duration;

use redis::Cmd;
use relq_core::{Error, environment::Timestamp, error::Operation};

use crate::{Conn, Owner, RedisConfig, command};

/// The properties of a server that do not stop relq, but that an operator should know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerCheck {
    /// The program of the server. `None` if the server does not say.
    pub program: Option<ServerProgram>,
    /// Whether the server writes an append-only file. Without it, a crash of the server
    /// loses all jobs since its last snapshot, or all jobs if it takes none. `None` if the
    /// server does not say.
    pub has_append_only_file: Option<bool>,
    /// The difference between the clock of this machine and the server's. `None` if the
    /// user may not read the server's clock.
    pub clock_difference: Option<ClockDifference>,
}

/// The program that a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProgram {
    /// The name of the program, such as `Redis` or `Valkey`.
    pub name: &'static str,
    /// The version, as the server writes it, such as `7.0.15`.
    pub version: String,
}

/// How far the clock of this machine is from the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDifference {
    /// This machine is ahead of the server.
    Ahead(Duration),
    /// This machine is behind the server.
    Behind(Duration),
}

impl ClockDifference {
    fn between(here: Timestamp, server: Timestamp) -> Self {
        if here >= server {
            Self::Ahead(here.since(server))
        } else {
            Self::Behind(server.since(here))
        }
    }

    /// The length of the difference.
    pub fn length(self) -> Duration {
        match self {
            Self::Ahead(by) | Self::Behind(by) => by,
        }
    }
}

/// Looks at the server of the owner's queue. Writes nothing.
///
/// # Errors
/// The errors of [`Conn::open`].
pub async fn check_server(
    config: RedisConfig,
    owner: &Owner,
) -> Result<ServerCheck, Error> {
    let conn = Conn::open(owner.backend, config.for_queue(&owner.keys)).await?;
    let mut asking = command("INFO");
    asking.arg("server").arg("persistence");
    let info = conn.call(Operation::Connect, &asking).await?.text()?;
    let clock_difference = read_clock(&conn).await?;
    Ok(ServerCheck {
        program: read_program(&info),
        has_append_only_file: has_append_only_file(&info),
        clock_difference,
    })
}

/// The fields of INFO with the version of a program. The others name a Redis version, too:
/// the one that they are compatible with.
const PROGRAMS: [(&str, &str); 3] = [
    ("valkey_version:", "Valkey"),
    ("dragonfly_version:", "Dragonfly"),
    ("redis_version:", "Redis"),
];

fn read_program(info: &str) -> Option<ServerProgram> {
    PROGRAMS.into_iter().find_map(|(field, name)| {
        let version = info.lines().find_map(|line| line.strip_prefix(field))?;
        Some(ServerProgram { name, version: version.trim_end().to_owned() })
    })
}

fn has_append_only_file(info: &str) -> Option<bool> {
    let field = info.lines().find_map(|line| line.strip_prefix("aof_enabled:"))?;
    match field.trim_end() {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    }
}

/// Reads the server's clock, and takes the time of this machine in the middle of the call.
async fn read_clock(conn: &Conn) -> Result<Option<ClockDifference>, Error> {
    let clock = conn.environment().clock();
    let (sent, began) = (clock.now(), clock.elapsed());
    let asking: Cmd = command("TIME");
    let mut parts = match conn.call(Operation::Connect, &asking).await {
        Err(Error::Denied { .. }) => return Ok(None),
        answer => answer?.parts()?,
    };
    let (seconds, micros) = (parts.part().text()?, parts.part().text()?);
    let number = |text: &str| text.parse::<i64>().ok();
    let Some((seconds, micros)) = number(&seconds).zip(number(&micros)) else {
        return Ok(None);
    };
    let server = Timestamp::from_unix_ms(seconds * 1000 + micros / 1000);
    let here = sent.plus(clock.elapsed().saturating_sub(began) / 2);
    Ok(Some(ClockDifference::between(here, server)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_like_redis_has_its_own_name() {
        let read = |info| read_program(info).map(|it| (it.name, it.version));
        let program = |name, version: &str| Some((name, version.to_owned()));
        let info = "# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\n";
        assert_eq!(read(info), program("Redis", "7.2.4"));
        let info = format!("{info}valkey_version:8.1.0\r\n");
        assert_eq!(read(&info), program("Valkey", "8.1.0"));
        assert_eq!(read("redis_mode:standalone\r\n"), None);
    }

    #[test]
    fn the_append_only_file_is_read_from_info() {
        let read = has_append_only_file;
        assert_eq!(read("# Persistence\r\nloading:0\r\naof_enabled:1\r\n"), Some(true));
        assert_eq!(read("aof_enabled:0\r\naof_rewrite_in_progress:0\r\n"), Some(false));
        assert_eq!(read("loading:0\r\n"), None);
    }

    #[test]
    fn the_clocks_differ_in_one_direction() {
        let at = Timestamp::from_unix_ms;
        let seconds = Duration::from_secs;
        let between = ClockDifference::between;
        assert_eq!(between(at(5000), at(2000)), ClockDifference::Ahead(seconds(3)));
        assert_eq!(between(at(2000), at(5000)), ClockDifference::Behind(seconds(3)));
        assert_eq!(between(at(2000), at(5000)).length(), seconds(3));
    }
}
