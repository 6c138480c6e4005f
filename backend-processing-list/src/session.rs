//! Who holds jobs: a worker by one opened queue.
//!
//! Names of workers are used again: by a process that comes back, by two connections of
//! one process, by mistake. A session is a worker's name and a nonce of the queue that
//! it claims by, so that nobody takes another's list for its own. An opened queue and
//! its other handles share the nonce: the heartbeat's connection speaks for the worker's.

use std::{fmt, sync::Arc};

use relq_core::{Randomness, WorkerId};

/// What an opened queue and its other handles add to the names of their workers.
#[derive(Debug, Clone)]
pub(crate) struct Nonce(Arc<str>);

impl Nonce {
    pub(crate) fn random(randomness: &dyn Randomness) -> Self {
        Self(randomness.text(12).into())
    }
}

/// The name of a worker's list, `worker/nonce`, or of its share of the common one,
/// `worker/`. Every name of a lease begins with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Session(Arc<str>);

impl Session {
    /// With a list of its own.
    pub(crate) fn own(worker: &WorkerId, nonce: &Nonce) -> Self {
        Self(format!("{worker}/{}", nonce.0).into())
    }

    /// Without one.
    pub(crate) fn shared(worker: &WorkerId) -> Self {
        Self(format!("{worker}/").into())
    }

    /// Reads a session that has a list of its own, or `None` when relq did not write it.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (worker, nonce) = text.split_once('/')?;
        WorkerId::new(worker).ok()?;
        let is_nonce =
            !nonce.is_empty() && nonce.bytes().all(|b| b.is_ascii_alphanumeric());
        is_nonce.then(|| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whose it is.
    pub(crate) fn worker(&self) -> WorkerId {
        let (worker, _) = self.0.split_once('/').expect("a session has a slash");
        WorkerId::new(worker).expect("a session begins with a worker's name")
    }
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// In which list a leased job is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    /// The common one.
    Shared,
    /// A worker's own.
    Own(Session),
}

impl Site {
    /// The session whose list it is, or nothing, as scripts take it.
    pub(crate) fn session(&self) -> &str {
        match self {
            Self::Shared => "",
            Self::Own(session) => session.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sessions_are_read() {
        for text in ["host:1:x/abc", "w/0"] {
            assert_eq!(Session::parse(text.as_bytes()).unwrap().as_str(), text);
        }
        for text in ["", "w", "w/", "/abc", "w/a/b", "w/a*", "w w/a", "w/\u{e9}"] {
            assert_eq!(Session::parse(text.as_bytes()), None, "{text}");
        }
    }
}
