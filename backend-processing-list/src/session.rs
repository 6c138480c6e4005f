//! A session: the claims of one worker through one opened queue.
//!
//! The name of a worker may be used again: by a restarted process, by two connections
//! of one process, or by mistake. So a session is a worker's name and a nonce of the
//! opened queue, and no worker takes another worker's list for its own. An opened queue
//! and the handles that `open_another` returns have the same nonce, so a heartbeat on
//! one handle extends the leases that another handle claimed.

use std::{fmt, sync::Arc};

use relq_core::{WorkerId, environment::Randomness};

/// A random text that distinguishes the workers of one opened queue from workers of the
/// same name elsewhere. All handles of the opened queue share it.
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
    /// The session of a worker that has a list of its own.
    pub(crate) fn own(worker: &WorkerId, nonce: &Nonce) -> Self {
        Self(format!("{worker}/{}", nonce.0).into())
    }

    /// The session of a worker that uses the shared list.
    pub(crate) fn shared(worker: &WorkerId) -> Self {
        Self(format!("{worker}/").into())
    }

    /// Parses the session of a worker that has a list of its own. Returns `None` if
    /// relq did not write the text.
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

/// Which processing list holds a leased job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    /// The list that all workers of the shared mode use.
    Shared,
    /// The list that this session owns.
    Own(Session),
}

impl Site {
    /// The session that owns the list, as scripts take it: the empty text for the
    /// shared list.
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
