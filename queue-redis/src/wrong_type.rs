//! Names the keys that another program has written with another type.
//!
//! The server's error has only the code `WRONGTYPE`, and a script has a dozen keys. So the
//! client asks for the length of each key of the queue, by the command of the type that
//! the key should have. The server refuses that command for the wrong keys only. A user
//! whose permissions keep the queue working has these commands.

use std::time::Duration;

use redis::RedisError;

use crate::{
    Owner,
    layout::{KeyType, Layout},
    link::Link,
};

const WRONG_TYPE: &str = "WRONGTYPE";

/// Whether the server refused a command because of the type of a key.
pub(crate) fn is_meant(error: &RedisError) -> bool {
    error.code() == Some(WRONG_TYPE)
}

/// The error, with the names of the queue's keys that have another type. If the server
/// does not tell, and for keys with an id in their name, the error stays as it is.
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
    let Ok(lengths) = link.ask_all(asking, limit).await else { return error };
    let is_wrong =
        |length: &redis::RedisResult<_>| length.as_ref().is_err_and(is_meant);
    let wrong: Vec<_> = keys
        .iter()
        .zip(&lengths)
        .filter(|(_, length)| is_wrong(length))
        .map(|((key, of, _), _)| format!("the key {key:?} is no {}", of.name()))
        .collect();
    if wrong.is_empty() {
        return error;
    }
    let told = error.detail().unwrap_or_default();
    let detail =
        format!("{}, so another program has written it: {told}", wrong.join(", "));
    redis::make_extension_error(WRONG_TYPE.to_owned(), Some(detail))
}

/// The queue's keys without those that have an id in their name: the type of each, and the
/// command for its length.
fn keys(owner: &Owner) -> Vec<(String, KeyType, &'static str)> {
    let Some(layout) = Layout::of(owner.backend) else { return Vec::new() };
    let queue = layout.queue.map(|of| (owner.keys.producer(), of));
    let parts = layout.parts().map(|(part, of)| (owner.keys.part(part), of));
    let all = queue.into_iter().chain(parts);
    all.filter_map(|(key, of)| Some((key, of, of.length_command()?))).collect()
}
