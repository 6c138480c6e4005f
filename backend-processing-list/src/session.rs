//! A session: one worker as it claims through one opened queue.
//!
//! The name of a worker may be used again: by a restarted process, by two connections
//! of one process, or by mistake. A session is a worker's name and a nonce of the
//! opened queue, so no worker takes another worker's list for its own. An opened queue
//! and its other handles share the nonce: a heartbeat on one handle extends the leases
//! of another.

use std::{fmt, sync::Arc};

use relq_core::{WorkerId, environment::Randomness};

/// The suffix that an opened queue and its other handles add to the names of their
/// workers.
#[derive(Debug, Clone)]
pub(crate) struct Nonce(Arc<str>);

impl Nonce {
    pub(crate) fn random(randomness: &dyn Randomness) -> Self {
        Self(randomness.text(12).into())
    }
}

/// The name of a worker's own list, `worker/nonce`, or of its part of the shared list,
/// `worker/`. Every lease's name begins with it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Session(Arc<str>);

impl Session {
    /// The session of a worker with its own list.
    pub(crate) fn own(worker: &WorkerId, nonce: &Nonce) -> Self {
        Self(format!("{worker}/{}", nonce.0).into())
    }

    /// The session of a worker in the shared list.
    pub(crate) fn shared(worker: &WorkerId) -> Self {
        Self(format!("{worker}/").into())
    }

    /// Parses a session with its own list. Returns `None` if relq did not write it.
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

    /// The worker of this session.
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

/// The list that holds a leased job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    /// The shared list.
    Shared,
    /// A worker's own list.
    Own(Session),
}

impl Site {
    /// The session that owns the list, or empty for the shared one, as scripts take it.
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
