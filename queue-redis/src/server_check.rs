//! Checks of a server that an operator wants to know of before the first job is lost.

use std::time::Duration;

use redis::Cmd;
use relq_core::{Error, environment::Timestamp, error::Operation};

use crate::{Conn, Owner, RedisConfig, command};

/// The properties of a server that do not stop relq, but that an operator should know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerCheck {
    /// Whether the server writes an append-only file. Without it, a crash of the server
    /// loses all jobs since its last snapshot, or all jobs if it takes none. `None` if the
    /// server does not say.
    pub has_append_only_file: Option<bool>,
    /// The difference between the clock of this machine and the server's. `None` if the
    /// user may not read the server's clock.
    pub clock_difference: Option<ClockDifference>,
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
    let mut persistence = command("INFO");
    persistence.arg("persistence");
    let info = conn.call(Operation::Connect, &persistence).await?.text()?;
    let clock_difference = read_clock(&conn).await?;
    Ok(ServerCheck {
        has_append_only_file: has_append_only_file(&info),
        clock_difference,
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
