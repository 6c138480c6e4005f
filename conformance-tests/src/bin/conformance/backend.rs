//! The backends that the program supports.

use clap::ValueEnum;

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

    /// The URL of a backend on the Redis server at `server`.
    pub(crate) fn on(self, server: &str) -> String {
        match self {
            Self::ProcessingListShared => {
                format!("processing-list+{server}?mode=shared")
            }
            other => format!("{}+{server}", other.name()),
        }
    }
}
