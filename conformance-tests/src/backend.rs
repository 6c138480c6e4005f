//! The backends that the program knows.

use clap::ValueEnum;

/// A backend of relq, by the name in its URL.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    /// On Redis: a list of ready jobs, a sorted set of leased ones
    Zset,
    /// Embedded: a SQLite file
    Sqlite,
}

impl Backend {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Zset => "zset",
            Self::Sqlite => "sqlite",
        }
    }
}
