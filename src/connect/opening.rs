//! How a backend opens a queue that a URL names.

use std::{pin::Pin, sync::Arc};

use relq_core::{Queue, QueueName, environment::Environment};

use super::{error::ConnectError, redact::redacted};

pub(super) type Open = for<'a> fn(&'a str, QueueName, Options) -> Opening<'a>;
pub(super) type Opening<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, ConnectError>> + Send + 'a>>;

/// How a queue is opened.
pub(super) struct Options {
    pub(super) environment: Environment,
    /// What to do if the file of a SQLite queue does not exist. Other backends ignore
    /// it.
    #[cfg_attr(
        not(feature = "sqlite-unbundled"),
        expect(dead_code, reason = "no file is opened")
    )]
    pub(super) missing_file: MissingFile,
}

/// Whether a file that does not exist is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MissingFile {
    Create,
    Refuse,
}

#[cfg(feature = "redis")]
pub(super) type OwnerOf =
    fn(
        &str,
        QueueName,
    ) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError>;

/// Defines `open` and `owner` of a backend on Redis, whose settings the function `config`
/// beside them reads from a URL.
#[cfg(feature = "redis")]
macro_rules! on_redis {
    ($Queue:ident) => {
        pub(super) fn open(
            url: &str,
            queue: relq_core::QueueName,
            options: super::opening::Options,
        ) -> super::opening::Opening<'_> {
            Box::pin(async move {
                let config = config(url)?.environment(options.environment);
                let queue = $Queue::connect(config, queue).await?;
                Ok(std::sync::Arc::new(queue) as _)
            })
        }

        pub(super) fn owner(
            url: &str,
            queue: relq_core::QueueName,
        ) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError> {
            use relq_redis::pattern::PatternConfig as _;
            Ok(config(url)?.owner(queue))
        }
    };
}

#[cfg(any(
    feature = "circular",
    feature = "keyspace",
    feature = "processing-list",
    feature = "sqlite-unbundled",
    feature = "stream",
    feature = "zset"
))]
/// The error for a URL of a known scheme.
pub(super) fn bad_url(url: &str, reason: impl Into<String>) -> ConnectError {
    ConnectError::BadUrl { url: redacted(url), reason: reason.into() }
}
