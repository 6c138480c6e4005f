//! The backends that the program `conformance` can test.

use std::sync::Arc;

use clap::ValueEnum;
use relq_conformance::{
    Subject,
    own::{
        Circular, Keyspace, ProcessingList, ProcessingListShared, Sqlite, Stream, Zset,
    },
};

/// A backend of relq, by the name in its URL.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// On Redis: a list of ready jobs, a sorted set of leased ones
    Zset,
    /// On Redis: one list that is rotated
    Circular,
    /// On Redis: a list for each worker
    ProcessingList,
    /// On Redis: a single list for all workers
    ProcessingListShared,
    /// On Redis: a whole database, each job a key
    Keyspace,
    /// On Redis: a stream and its consumer group
    Stream,
    /// Embedded: a SQLite file
    Sqlite,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zset => "zset",
            Self::Circular => "circular",
            Self::ProcessingList => "processing-list",
            Self::ProcessingListShared => "processing-list-shared",
            Self::Keyspace => "keyspace",
            Self::Stream => "stream",
            Self::Sqlite => "sqlite",
        }
    }

    /// The backend, as the suite tests it.
    pub(crate) fn subject(self) -> Arc<dyn Subject> {
        match self {
            Self::Zset => Arc::new(Zset),
            Self::Circular => Arc::new(Circular),
            Self::ProcessingList => Arc::new(ProcessingList),
            Self::ProcessingListShared => Arc::new(ProcessingListShared),
            Self::Keyspace => Arc::new(Keyspace::default()),
            Self::Stream => Arc::new(Stream),
            Self::Sqlite => Arc::new(Sqlite),
        }
    }

    /// The URL that opens a queue of this backend on the Redis server at `server`, with
    /// options such as `replicas=1`.
    pub(crate) fn on(self, server: &str, options: &[String]) -> String {
        let (scheme, own) = match self {
            Self::ProcessingListShared => ("processing-list", Some("mode=shared")),
            other => (other.name(), None),
        };
        let options: Vec<_> =
            own.into_iter().chain(options.iter().map(String::as_str)).collect();
        let mark = if options.is_empty() { "" } else { "?" };
        format!("{scheme}+{server}{mark}{}", options.join("&"))
    }
}
