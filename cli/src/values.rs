//! Parsers for command-line values that clap does not provide.

use std::time::Duration;

use relq::{Priority, batch::BatchPriority};

/// Parses a duration such as `5s`, `1h 30m` or `250ms`. It must be above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration =
        humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if duration < Duration::from_millis(1) {
        return Err("it must be at least 1ms".to_owned());
    }
    Ok(duration)
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
