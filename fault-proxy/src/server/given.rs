//! A server that the user of the suite provides. The tests use it one after the other.

use std::{
    env, io,
    path::{Path, PathBuf},
    str::FromStr,
    sync::{Condvar, Mutex, PoisonError},
};

use super::talk;
use crate::proxy::{Address, Guarded};

/// The environment variable that names a PEM file with the authority that signed the
/// server's certificate.
const CA: &str = "RELQ_TEST_CACERT";

/// A Redis server whose data the suite may delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenServer(Guarded);

impl GivenServer {
    /// Reads which server a URL names, as [`Guarded::parse`] does.
    ///
    /// # Errors
    /// The errors of [`Guarded::parse`].
    pub fn at(url: &str, ca: Option<&Path>) -> io::Result<Self> {
        Guarded::parse(url, ca).map(Self)
    }

    /// Checks that the server can be reached and accepts the login.
    ///
    /// # Errors
    /// The reason why the server cannot be used.
    pub fn answers(&self) -> io::Result<()> {
        let answer = talk::ask(&Address::Guarded(self.0.clone()), &[b"PING"])?;
        if answer == b"+PONG\r\n" {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned()))
    }
}

impl FromStr for GivenServer {
    type Err = io::Error;

    /// Parses a URL, with the authority that `RELQ_TEST_CACERT` names.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::at(text, env::var_os(CA).map(PathBuf::from).as_deref())
    }
}

static IS_TAKEN: Mutex<bool> = Mutex::new(false);
static IS_FREE: Condvar = Condvar::new();

impl GivenServer {
    /// Waits until no other test uses the server, because each test empties it.
    pub(super) fn take(self) -> Given {
        let taken = IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = IS_FREE
            .wait_while(taken, |taken| *taken)
            .unwrap_or_else(PoisonError::into_inner);
        *taken = true;
        Given(self.0)
    }
}

/// The server that the user provided, reserved for one test.
#[derive(Debug)]
pub(super) struct Given(Guarded);

impl Given {
    pub(super) fn address(&self) -> Address {
        Address::Guarded(self.0.clone())
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        *IS_TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        IS_FREE.notify_one();
    }
}
