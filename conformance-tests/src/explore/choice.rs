//! A decision of the search, and its form in a replay line.

use std::{fmt, str::FromStr};

use crate::spec::operation::Who;

/// A decision about what happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    /// The command of the actor runs.
    Pass(Who),
    /// The next step of time.
    Time,
    /// The actor dies before its command runs.
    Die(Who),
}

impl Choice {
    pub(super) fn is_death(self) -> bool {
        matches!(self, Self::Die(_))
    }

    /// The actor; nobody when time passes.
    pub(super) fn who(self) -> Who {
        match self {
            Self::Pass(who) | Self::Die(who) => who,
            Self::Time => Who::Nobody,
        }
    }
}

const LETTERS: [(Who, char); 5] = [
    (Who::Producer, 'p'),
    (Who::WorkerA, 'a'),
    (Who::WorkerB, 'b'),
    (Who::Operator, 'o'),
    (Who::Reaper, 'r'),
];

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |who: &Who| {
            LETTERS.iter().find(|(known, _)| known == who).map_or('-', |it| it.1)
        };
        match self {
            Self::Time => f.write_str("-"),
            Self::Pass(who) => write!(f, "{}", letter(who)),
            Self::Die(who) => write!(f, "{}!dies", letter(who)),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "-" {
            return Ok(Self::Time);
        }
        let (letter, dies) = match text.strip_suffix("!dies") {
            Some(letter) => (letter, true),
            None => (text, false),
        };
        let who = LETTERS.iter().find(|(_, known)| letter == known.to_string());
        let (who, _) = who.ok_or_else(|| format!("`{text}` is no decision"))?;
        Ok(if dies { Self::Die(*who) } else { Self::Pass(*who) })
    }
}
