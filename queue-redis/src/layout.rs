//! The names and types of the keys of every pattern, except keys that contain an id.
//!
//! Each backend names its own keys in its `keys.rs`. They are listed here together, so
//! that any backend can detect keys of another one. `tests/owners.rs` of the package
//! `relq` fails when a backend has a key that is not listed.

/// The end of the marker key's name: the key of queue `Q` is `{Q}:marker`.
pub(crate) const MARKER: &str = "marker";

/// The end of the name of the key that wakes a worker: `{Q}:wake` for queue `Q`.
/// Producers that do not use relq may push to this key.
pub(crate) const WAKE: &str = "wake";

/// The end of the name of the stream that wakes calls which wait for results. It is only a hint
/// for them, and stays for an hour after a purge.
pub(crate) const ENDED: &str = "ended";

/// The Redis type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyType {
    Hash,
    List,
    Set,
    Stream,
    String,
    Zset,
}
use KeyType::{Hash, List, Set, Stream, String as Text, Zset};

/// The end of a key's name, after the queue's name, and the type of the key.
type Part = (&'static str, KeyType);

/// The keys of the bookkeeping, which every pattern has.
const BOOKKEEPING: &[Part] = &[
    ("later", Zset),
    ("jobs", Hash),
    ("dead", Zset),
    ("errors", Hash),
    ("unique", Hash),
    ("ids", Zset),
    ("calls", Zset),
    ("answers", Hash),
    ("cancelled", Zset),
    ("totals", Hash),
    ("paused", Text),
    (WAKE, List),
    ("schedules", Hash),
    ("results", Hash),
    ("kept", Zset),
    (ENDED, Stream),
    ("followers", Hash),
    ("orphans", Zset),
    ("alive", Zset),
    ("runs", Hash),
];

/// The keys of one backend, without those of the bookkeeping.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) backend: &'static str,
    /// The type of the key that has the queue's name; `None` if the pattern has no such
    /// key.
    pub(crate) queue: Option<KeyType>,
    parts: &'static [Part],
    /// The options that the backend may write into a marker.
    pub(crate) options: &'static [&'static str],
}

const LAYOUTS: &[Layout] = &[
    Layout {
        backend: "circular",
        queue: Some(List),
        parts: &[("marks", Zset)],
        options: &["finish=lrem"],
    },
    Layout {
        backend: "keyspace",
        queue: None,
        parts: &[("leased", Zset)],
        options: &[],
    },
    Layout {
        backend: "processing-list",
        queue: Some(List),
        parts: &[
            ("handed", List),
            ("processing", List),
            ("leased", Zset),
            ("workers", Zset),
            ("retired", Zset),
        ],
        options: &["mode=shared"],
    },
    Layout {
        backend: "stream",
        queue: Some(Stream),
        parts: &[
            ("urgent", Stream),
            ("patient", Stream),
            ("leased", Zset),
            ("batch:running", Zset),
            ("batch:claimable", Zset),
            ("batch:ids", Zset),
            ("batch:outbox", Set),
            ("batch:cancelling", Set),
            ("batch:told", Stream),
            ("batch:ended", Zset),
        ],
        options: &[],
    },
    Layout {
        backend: "zset",
        queue: Some(List),
        parts: &[("handed", List), ("ranked", Zset), ("leased", Zset), ("held", Hash)],
        options: &[],
    },
];

impl Layout {
    /// The layout of the backend with this name.
    pub(crate) fn of(backend: &str) -> Option<&'static Self> {
        LAYOUTS.iter().find(|layout| layout.backend == backend)
    }

    /// The parts of this backend's keys, with the type of each.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        BOOKKEEPING.iter().chain(self.parts).copied()
    }

    /// The ends of key names that other backends use and this backend does not.
    pub(crate) fn foreign_parts(&self) -> Vec<&'static str> {
        let is_own = |part: &&str| self.parts().any(|(own, _)| own == *part);
        parts().into_iter().filter(|part| !is_own(part)).collect()
    }
}

/// The parts of the keys of all backends, each once.
pub(crate) fn parts() -> Vec<&'static str> {
    let of_patterns = LAYOUTS.iter().flat_map(|layout| layout.parts);
    let all = BOOKKEEPING.iter().chain(of_patterns);
    let mut parts: Vec<_> = all.map(|(part, _)| *part).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

impl KeyType {
    /// The name of the type, as the command TYPE returns it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Hash => "hash",
            List => "list",
            Set => "set",
            Stream => "stream",
            Text => "string",
            Zset => "zset",
        }
    }

    /// A command that the server refuses only for a key of another type. `None` for a
    /// string: relq asks only whether such a key exists, so its type does not matter.
    pub(crate) fn length_command(self) -> Option<&'static str> {
        match self {
            Hash => Some("HLEN"),
            List => Some("LLEN"),
            Set => Some("SCARD"),
            Stream => Some("XLEN"),
            Text => None,
            Zset => Some("ZCARD"),
        }
    }
}
