//! The messages that a page shows once, after the redirect that follows a form.
//!
//! The redirect carries a random name of the message, not the message: otherwise a link
//! could make the page say anything.

use std::{collections::VecDeque, sync::Mutex};

use relq_core::environment::{OsRandomness, Randomness as _};

/// How many messages wait to be shown. The oldest are dropped.
const MOST: usize = 256;

/// The messages that were not shown yet.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<VecDeque<(String, String)>>);

impl Notices {
    /// Keeps a message, and returns its name.
    pub(crate) fn keep(&self, message: String) -> String {
        let name = OsRandomness.text(16);
        let mut kept = self.0.lock().expect("no holder of the lock panics");
        if kept.len() == MOST {
            kept.pop_front();
        }
        kept.push_back((name.clone(), message));
        name
    }

    /// Takes the message of this name.
    pub(crate) fn take(&self, name: &str) -> Option<String> {
        let mut kept = self.0.lock().expect("no holder of the lock panics");
        let at = kept.iter().position(|(known, _)| known == name)?;
        kept.remove(at).map(|(_, message)| message)
    }
}
