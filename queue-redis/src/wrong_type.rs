//! Finds the names of the keys that another program has written with another type.
//!
//! The server's error has only the code `WRONGTYPE`, and a script has a dozen keys. So
//! the client asks for the length of each key of the queue, by the command of the type
//! that the key should have. The server refuses that command only for the keys of
//! another type. A user with the permissions that relq needs may run these commands.

use std::time::Duration;

use redis::{RedisError, RedisResult, Value};

use crate::{
    Owner,
    layout::{KeyType, Layout},
    link::Link,
};

const WRONG_TYPE: &str = "WRONGTYPE";

/// Whether the error says that the server refused a command because a key has the wrong
/// type.
pub(crate) fn is_cause(error: &RedisError) -> bool {
    error.code() == Some(WRONG_TYPE)
}

/// Adds the names of the queue's keys that have another type to the error. The error
/// stays as it is if the server does not answer. Keys with an id in their name are not
/// checked.
pub(crate) async fn named(
    error: RedisError,
    owner: &Owner,
    mut link: Link,
    limit: Duration,
) -> RedisError {
    let keys = keys(owner);
    let mut asking = redis::pipe();
    for (key, _, length) in &keys {
        asking.cmd(length).arg(key);
    }
    match link.ask_all(asking, limit).await {
        Ok(lengths) => with_names(error, &keys, &lengths),
        Err(_) => error,
    }
}

fn with_names(
    error: RedisError,
    keys: &[(String, KeyType, &'static str)],
    lengths: &[RedisResult<Value>],
) -> RedisError {
    let is_wrong = |length: &RedisResult<Value>| length.as_ref().is_err_and(is_cause);
    let wrong: Vec<_> = keys
        .iter()
        .zip(lengths)
        .filter(|(_, length)| is_wrong(length))
        .map(|((key, of, _), _)| format!("the key {key:?} is not a {}", of.name()))
        .collect();
    if wrong.is_empty() {
        return error;
    }
    let told = error.detail().unwrap_or_default();
    let detail =
        format!("{}, so another program has written it: {told}", wrong.join(", "));
    redis::make_extension_error(WRONG_TYPE.to_owned(), Some(detail))
}

/// Returns the queue's keys with their types, and the command that reads the length of
/// each. Keys with an id in their name are left out.
fn keys(owner: &Owner) -> Vec<(String, KeyType, &'static str)> {
    let Some(layout) = Layout::of(owner.backend) else { return Vec::new() };
    let queue = layout.queue.map(|of| (owner.keys.producer(), of));
    let parts = layout.parts().map(|(part, of)| (owner.keys.part(part), of));
    let all = queue.into_iter().chain(parts);
    all.filter_map(|(key, of)| Some((key, of, of.length_command()?))).collect()
}
