//! The faults of a run, and the random answers of its server.

use super::choice::Choice;

/// How many faults of each kind, and how many other random answers, a run may have at
/// most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// How many actors die before one of their commands. While the server holds a
    /// command of the actor, it dies in two ways: the server sees its connections end,
    /// or does not notice.
    pub deaths: usize,
    /// How many actors die while one of their commands is on its way to the server,
    /// which runs it later.
    pub late: usize,
    /// How many connections of living actors break, before a command ran or after it.
    pub cuts: usize,
    /// How many steps get another random answer of the server than the first one in
    /// sorted order. Each possible answer is tried.
    pub draws: usize,
}

impl Faults {
    /// Allows up to `deaths` deaths in a run, and no other faults.
    pub fn deaths(deaths: usize) -> Self {
        Self { deaths, ..Self::default() }
    }

    /// Counts the faults and draws among these decisions.
    pub(super) fn of(schedule: &[Choice]) -> Self {
        let mut faults = Self::default();
        for choice in schedule {
            if let Some(left) = faults.of_kind(*choice) {
                *left += 1;
            }
        }
        faults
    }

    /// If the decision is a fault or draws an answer, allows one less.
    pub(super) fn takes(&mut self, choice: Choice) {
        if let Some(left) = self.of_kind(choice) {
            *left = left.saturating_sub(1);
        }
    }

    fn of_kind(&mut self, choice: Choice) -> Option<&mut usize> {
        match choice {
            Choice::Die(_) | Choice::Freeze(_) => Some(&mut self.deaths),
            Choice::Late(_) => Some(&mut self.late),
            Choice::Cut(_) | Choice::Lose(_) => Some(&mut self.cuts),
            Choice::Draw(..) => Some(&mut self.draws),
            Choice::Pass(_) | Choice::Time | Choice::Arrive => None,
        }
    }
}
