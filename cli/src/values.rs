//! Parsers for command-line values that clap does not provide, or whose errors are not
//! plain sentences.

use std::{
    net::SocketAddr,
    num::{NonZeroU8, NonZeroU16, NonZeroU32},
    time::Duration,
};

use clap::Command;
use relq::{Priority, batch::BatchPriority, limits::MAX_DURATION};

const TOO_LONG: &str = "it is longer than a hundred years";

/// Parses a duration such as `5s`, `1h 30m` or `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| match error {
        humantime::DurationError::NumberOverflow => TOO_LONG.to_owned(),
        _ => "a duration is a number with its unit, such as 500ms, 5s, 10m or 1h30m"
            .to_owned(),
    })?;
    if duration > MAX_DURATION {
        return Err(TOO_LONG.to_owned());
    }
    Ok(duration)
}

/// Formats an age for people: in whole seconds from one second on.
pub(crate) fn age(age: Duration) -> String {
    let shown = match age.as_secs() {
        0 => Duration::from_millis(age.as_millis().try_into().unwrap_or(0)),
        seconds => Duration::from_secs(seconds),
    };
    humantime::format_duration(shown).to_string()
}

/// Parses a duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration < Duration::from_millis(1) {
        return Err("it must be at least 1ms".to_owned());
    }
    Ok(duration)
}

/// Parses an address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "write an IP address and a port, such as 127.0.0.1:8080 or [::]:8080".to_owned()
    })
}

/// Parses a number from 1 to 255.
pub(crate) fn count_u8(text: &str) -> Result<NonZeroU8, String> {
    text.parse().map_err(|_| not_from_1_to(u8::MAX.into()))
}

/// Parses a number from 1 to 65535.
pub(crate) fn count_u16(text: &str) -> Result<NonZeroU16, String> {
    text.parse().map_err(|_| not_from_1_to(u16::MAX.into()))
}

/// Parses a number from 1 to 4294967295.
pub(crate) fn count(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| not_from_1_to(u32::MAX))
}

fn not_from_1_to(most: u32) -> String {
    format!("it must be a whole number from 1 to {most}")
}

/// Parses a number from 0, where 0 stands for no limit.
pub(crate) fn limit(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| {
        format!("it must be a whole number from 0, for no limit, to {}", u32::MAX)
    })
}

/// Parses the priority of a job, from 0 to 9.
pub(crate) fn priority(text: &str) -> Result<Priority, String> {
    let level = text.parse().ok().and_then(Priority::new);
    level.ok_or_else(|| {
        "a priority is a number from 0 to 9, larger is sooner".to_owned()
    })
}

/// Parses a header of the form `NAME=VALUE`. The value may contain `=`.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = pair.ok_or("a header is given as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses the priority of a batch, from 0 to 99.
pub(crate) fn batch_priority(text: &str) -> Result<BatchPriority, String> {
    let level = text.parse().ok().and_then(BatchPriority::new);
    level.ok_or_else(|| {
        "a batch's priority is a number from 0 to 99, larger is sooner".to_owned()
    })
}

/// The names of the values that begin with a digit.
const NUMERIC: [&str; 2] = ["N", "DURATION"];

/// Reads a word such as `-5` after an option of a number or a duration as its value, so
/// that the error is about the value and not about an unknown option.
pub(crate) fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|argument| {
        let names = argument.get_value_names().unwrap_or_default();
        let is_numeric = names.iter().any(|name| NUMERIC.contains(&name.as_str()));
        argument.allow_hyphen_values(is_numeric)
    });
    command.mut_subcommands(with_negative_numbers)
}
