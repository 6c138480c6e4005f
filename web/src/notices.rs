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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_message_makes_room_for_a_new_one() {
        let notices = Notices::default();
        let names: Vec<_> =
            (0..=MOST).map(|number| notices.keep(number.to_string())).collect();

        assert_eq!(notices.take(&names[0]), None, "the oldest message is dropped");
        for (number, name) in names.iter().enumerate().skip(1) {
            assert_eq!(notices.take(name), Some(number.to_string()), "each other one");
            assert_eq!(notices.take(name), None, "a message is shown once");
        }
    }
}
