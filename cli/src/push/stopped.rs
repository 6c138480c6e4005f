//! The message of a push that was stopped: what is stored, and where to continue.

use crate::failure::Failure;

/// The input that one job of a push is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Line,
    Payload,
}

impl Unit {
    /// The failure of a push of which the first `done` units are stored. Of the next
    /// `unknown` ones it is not known, because the reply to their call is missing.
    pub(super) fn stopped(
        self,
        why: &str,
        done: usize,
        unknown: Option<usize>,
    ) -> Failure {
        let stored = self.stored(done);
        Failure::Failed(match unknown.map(|unknown| self.unknown(done, unknown)) {
            None => format!("the push was stopped: {why}; {stored}"),
            Some(unknown) if done == 0 => {
                format!("the push was stopped: {why}; {unknown}")
            }
            Some(unknown) => {
                format!("the push was stopped: {why}; {stored}; {unknown}")
            }
        })
    }

    /// Says how many units from the start are stored.
    pub(super) fn stored(self, done: usize) -> String {
        let (word, next) = (self.word(), done + 1);
        match done {
            0 => "nothing was stored".to_owned(),
            1 => format!("the first {word} is stored, so go on with {word} 2"),
            _ => format!(
                "the first {done} {word}s are stored, so go on with {word} {next}"
            ),
        }
    }

    fn unknown(self, done: usize, unknown: usize) -> String {
        let (word, from, to) = (self.word(), done + 1, done + unknown);
        if from == to {
            format!("it is not known whether {word} {from} is stored")
        } else {
            format!("it is not known whether {word}s {from} to {to} are stored")
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Payload => "payload",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(unit: Unit, done: usize, unknown: Option<usize>) -> String {
        match unit.stopped("by a signal", done, unknown) {
            Failure::Failed(message) => message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_message_says_what_is_stored() {
        let stopped = "the push was stopped: by a signal; ";
        for (done, unknown, words) in [
            (0, None, "nothing was stored"),
            (0, Some(1), "it is not known whether line 1 is stored"),
            (0, Some(2), "it is not known whether lines 1 to 2 are stored"),
            (1, None, "the first line is stored, so go on with line 2"),
            (2, None, "the first 2 lines are stored, so go on with line 3"),
            (
                2,
                Some(3),
                "the first 2 lines are stored, so go on with line 3; it is not known \
                 whether lines 3 to 5 are stored",
            ),
        ] {
            assert_eq!(message(Unit::Line, done, unknown), format!("{stopped}{words}"));
        }
        let payloads = "the first 2 payloads are stored, so go on with payload 3";
        assert_eq!(message(Unit::Payload, 2, None), format!("{stopped}{payloads}"));
    }
}
