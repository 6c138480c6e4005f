//! A decision of the search, and its form in a replay line.

use std::{fmt, str::FromStr};

use crate::{proxy::Draws, spec::operation::Who};

/// A waiting step: its actor, and its number among the waiting steps of that actor,
/// counted from 0. Only an actor whose claim waits can have more than one.
pub(super) type WaitingStep = (Who, usize);

/// A decision of the search about what happens next in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Choice {
    /// The step runs.
    Pass(WaitingStep),
    /// The step runs, and the server's random answers are these.
    Draw(WaitingStep, Draws),
    /// Time passes: the next step of time that the scene names, or until the next sleep
    /// ends.
    Time,
    /// The actor dies, and none of its waiting steps runs.
    Die(Who),
    /// The actor dies, and the server does not notice: its connections stay open.
    Freeze(Who),
    /// The actor dies, and its step runs later.
    Late(WaitingStep),
    /// The late steps of dead actors run.
    Arrive,
    /// The connection of the step breaks before the step runs.
    Cut(WaitingStep),
    /// The step runs, and its connection breaks before the reply.
    Lose(WaitingStep),
}

impl Choice {
    /// The actor that the decision is about. `Nobody` if time passes or late steps run.
    pub(super) fn who(self) -> Who {
        match self {
            Self::Time | Self::Arrive => Who::Nobody,
            Self::Die(who) | Self::Freeze(who) => who,
            Self::Pass((who, _))
            | Self::Draw((who, _), _)
            | Self::Late((who, _))
            | Self::Cut((who, _))
            | Self::Lose((who, _)) => who,
        }
    }

    /// The words that a picture of the run shows before the command.
    pub(super) fn label(self) -> String {
        let words = match self {
            Self::Draw(_, draws) => return format!("draws {draws} in "),
            Self::Pass(_) | Self::Time | Self::Arrive => "",
            Self::Die(_) => "dies before ",
            Self::Freeze(_) => "freezes before ",
            Self::Late(_) => "dies, later runs ",
            Self::Cut(_) => "is cut off before ",
            Self::Lose(_) => "loses the reply of ",
        };
        words.to_owned()
    }

    /// The word that a replay line has after the actor's letter.
    fn word(self) -> &'static str {
        match self {
            Self::Pass(_) | Self::Draw(..) | Self::Time | Self::Arrive => "",
            Self::Die(_) => "!dies",
            Self::Freeze(_) => "!freezes",
            Self::Late(_) => "!late",
            Self::Cut(_) => "!cut",
            Self::Lose(_) => "!lost",
        }
    }
}

const TIME: &str = "-";
const ARRIVE: &str = "+";

const LETTERS: [(Who, char); 5] = [
    (Who::Producer, 'p'),
    (Who::WorkerA, 'a'),
    (Who::WorkerB, 'b'),
    (Who::Operator, 'o'),
    (Who::Reaper, 'r'),
];

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = self.who();
        let letter = LETTERS.iter().find(|(known, _)| *known == who);
        match self {
            Self::Time => return f.write_str(TIME),
            Self::Arrive => return f.write_str(ARRIVE),
            _ => write!(f, "{}", letter.map_or('?', |it| it.1))?,
        }
        match self {
            Self::Pass((_, at))
            | Self::Draw((_, at), _)
            | Self::Late((_, at))
            | Self::Cut((_, at))
            | Self::Lose((_, at))
                if *at > 0 =>
            {
                write!(f, "{}", at + 1)?;
            }
            _ => {}
        }
        match self {
            Self::Draw(_, draws) => write!(f, "~{draws}"),
            _ => f.write_str(self.word()),
        }
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is not a decision");
        match text {
            TIME => return Ok(Self::Time),
            ARRIVE => return Ok(Self::Arrive),
            _ => {}
        }
        if let Some((step, draws)) = text.split_once('~') {
            let Self::Pass(step) = step.parse()? else { return Err(unknown()) };
            return Ok(Self::Draw(step, draws.parse()?));
        }
        let (step, word) = match text.find('!') {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let mut symbols = step.chars();
        let letter = symbols.next().ok_or_else(unknown)?;
        let who = LETTERS.iter().find(|(_, known)| *known == letter);
        let (who, _) = *who.ok_or_else(unknown)?;
        let at = match symbols.as_str() {
            "" => 0,
            number => number.parse::<usize>().map_err(|_| unknown())?.max(1) - 1,
        };
        let step = (who, at);
        let choices = [
            Self::Pass(step),
            Self::Die(who),
            Self::Freeze(who),
            Self::Late(step),
            Self::Cut(step),
            Self::Lose(step),
        ];
        choices.into_iter().find(|choice| choice.word() == word).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_read_as_it_is_written() {
        let step = (Who::WorkerB, 1);
        let all = [
            Choice::Pass((Who::WorkerA, 0)),
            Choice::Pass(step),
            Choice::Time,
            Choice::Die(Who::Reaper),
            Choice::Freeze(Who::WorkerB),
            Choice::Late(step),
            Choice::Arrive,
            Choice::Cut(step),
            Choice::Lose(step),
            Choice::Draw(step, "2.0".parse().unwrap()),
        ];

        for choice in all {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert!("x".parse::<Choice>().is_err());
        assert!("a!sleeps".parse::<Choice>().is_err());
        assert!("a~".parse::<Choice>().is_err() && "-~1".parse::<Choice>().is_err());
    }
}
