//! A server of the user's, which all tests share by turns.

use std::{
    io,
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
    sync::{Condvar, Mutex, PoisonError},
};

/// A Redis server without a password, whose content is the suite's to delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenServer(SocketAddr);

impl FromStr for GivenServer {
    type Err = io::Error;

    /// `HOST:PORT`, also with `redis://` before it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let address = text.strip_prefix("redis://").unwrap_or(text);
        let mut found = address.trim_end_matches('/').to_socket_addrs()?;
        found.next().map(Self).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static IS_FREE: Condvar = Condvar::new();

impl GivenServer {
    /// Waits for its turn: one test must not empty the server under another.
    pub(super) fn take(self) -> Given {
        let taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = IS_FREE
            .wait_while(taken, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Given(self.0)
    }
}

/// The user's server, in the hands of one test.
#[derive(Debug)]
pub(super) struct Given(SocketAddr);

impl Given {
    pub(super) fn address(&self) -> SocketAddr {
        self.0
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        IS_FREE.notify_one();
    }
}
