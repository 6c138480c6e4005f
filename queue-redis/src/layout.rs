//! The names of the keys of every pattern, except keys that contain an id.
//!
//! Each backend names its own keys in its `keys.rs`. They are listed here together, so
//! that any backend can detect keys of another one. `tests/owners.rs` of the package
//! `relq` fails when a backend has a key that is not listed.

/// The part after the queue's name in the key of its marker.
pub(crate) const MARKER: &str = "marker";

/// The part of the key that wakes a worker. Producers that are not relq may push to it.
pub(crate) const WAKE: &str = "wake";

/// The keys that every pattern has.
const BOOKKEEPING: &[&str] = &[
    "later",
    "jobs",
    "dead",
    "errors",
    "unique",
    "ids",
    "calls",
    "answers",
    "cancelled",
    "totals",
    "paused",
    WAKE,
];

/// The keys that one backend has besides the bookkeeping.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) backend: &'static str,
    /// The type of the key `Q`; `None` if the pattern has no such key.
    pub(crate) queue: Option<&'static str>,
    pub(crate) parts: &'static [&'static str],
    /// The options that a marker may have.
    pub(crate) options: &'static [&'static str],
}

const LAYOUTS: &[Layout] = &[
    Layout {
        backend: "circular",
        queue: Some("list"),
        parts: &["marks"],
        options: &["finish=lrem"],
    },
    Layout { backend: "keyspace", queue: None, parts: &["leased"], options: &[] },
    Layout {
        backend: "processing-list",
        queue: Some("list"),
        parts: &["handed", "processing", "leased", "workers", "retired"],
        options: &["mode=shared"],
    },
    Layout {
        backend: "stream",
        queue: Some("stream"),
        parts: &[
            "urgent",
            "patient",
            "leased",
            "batch:running",
            "batch:claimable",
            "batch:ids",
            "batch:outbox",
            "batch:cancelling",
            "batch:told",
            "batch:ended",
        ],
        options: &[],
    },
    Layout {
        backend: "zset",
        queue: Some("list"),
        parts: &["handed", "ranked", "leased", "held"],
        options: &[],
    },
];

impl Layout {
    /// The layout of the backend with this name.
    pub(crate) fn of(backend: &str) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| layout.backend == backend)
    }

    /// The key parts that other backends have and this one does not.
    pub(crate) fn foreign_parts(&self) -> Vec<&'static str> {
        let is_own =
            |part: &&str| BOOKKEEPING.contains(part) || self.parts.contains(part);
        parts().into_iter().filter(|part| !is_own(part)).collect()
    }
}

/// The key parts of all patterns, each once.
pub(crate) fn parts() -> Vec<&'static str> {
    let of_patterns = LAYOUTS.iter().flat_map(|layout| layout.parts);
    let mut parts: Vec<_> = BOOKKEEPING.iter().chain(of_patterns).copied().collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}
