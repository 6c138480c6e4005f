//! The functions and options with which a backend opens the queue that a URL names.

use std::{pin::Pin, sync::Arc};

use relq_core::{Queue, QueueName, environment::Environment};

use super::{error::ConnectError, redact::redacted};

pub(super) type Open = for<'a> fn(&'a str, QueueName, Options) -> Opening<'a>;
pub(super) type Opening<'a> =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, ConnectError>> + Send + 'a>>;

/// The options for opening a queue: its environment, what to do if its file is missing,
/// and which part of a queue is opened.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) environment: Environment,
    /// Whether to create the file of a SQLite queue that does not exist. Other backends
    /// ignore it.
    #[cfg_attr(
        not(feature = "sqlite-unbundled"),
        expect(dead_code, reason = "no file is opened")
    )]
    pub(super) missing_file: MissingFile,
    /// Which part of a queue of several parts is opened.
    #[cfg(feature = "redis")]
    pub(super) partition: relq_redis::Partition,
}

impl Options {
    /// The options for a whole queue.
    pub(super) fn new(environment: Environment, missing_file: MissingFile) -> Self {
        Self {
            environment,
            missing_file,
            #[cfg(feature = "redis")]
            partition: relq_redis::Partition::Whole,
        }
    }
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
        relq_redis::Partition,
    ) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError>;

/// Defines the functions `open` and `owner` for a backend on Redis. They call the
/// function `config` of the same module, which reads the backend's settings from a URL.
/// `$connect` is a function of the backend's crate: if it were the method of the
/// generic queue type, this crate would compile the generic code a second time.
/// `$in_parts` is the method of the configuration that says which part is opened.
#[cfg(feature = "redis")]
macro_rules! on_redis {
    ($connect:path, $in_parts:path) => {
        pub(super) fn open(
            url: &str,
            queue: relq_core::QueueName,
            options: super::opening::Options,
        ) -> super::opening::Opening<'_> {
            Box::pin(async move {
                let config = config(url)?.environment(options.environment);
                let config = $in_parts(config, options.partition);
                Ok($connect(config, queue).await?)
            })
        }

        pub(super) fn owner(
            url: &str,
            queue: relq_core::QueueName,
            partition: relq_redis::Partition,
        ) -> Result<(relq_redis::RedisConfig, relq_redis::Owner), ConnectError> {
            use relq_redis::pattern::PatternConfig as _;
            Ok($in_parts(config(url)?, partition).owner(queue))
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
/// Creates the error for a URL whose scheme is known but whose rest cannot be used.
pub(super) fn bad_url(url: &str, reason: impl Into<String>) -> ConnectError {
    ConnectError::BadUrl { url: redacted(url), reason: reason.into() }
}
