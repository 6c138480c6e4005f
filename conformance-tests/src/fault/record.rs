//! Faults, and what is written down of each step.

use std::fmt;

/// What goes wrong at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The actor dies and the command was never sent.
    Before,
    /// The command runs, its reply is lost, and the actor is dead by then.
    After(Behind),
    /// The actor dies; its command, and what it sent behind it, run late: when
    /// [`FaultProxy::release_ghosts`](super::FaultProxy::release_ghosts) says.
    Ghost,
    /// The server answers this error (code and words) and does nothing.
    Error(String),
    /// Somebody else says this to the server first, `SCRIPT FLUSH` for one; then the
    /// command goes through. It is said again if the connection was lost meanwhile.
    Meanwhile(Vec<String>),
    /// The connection breaks; the actor lives.
    Cut(When),
    /// The actor dies while the server holds its command, and its connections are
    /// closed. If the server did not hold it, the reply is lost.
    WaiterCloses,
    /// The actor dies while the server holds its command, and the server does not
    /// get to know: its connections stay open, unread, until
    /// [`FaultProxy::heal`](super::FaultProxy::heal).
    WaiterFreezes,
    /// A blocking command is answered at once that its time is over, and does
    /// nothing. At another command this fault does not fire.
    TimeOut,
}

/// What becomes of the commands that an actor sent behind the hit by a fault one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// They were never sent.
    Dropped,
    /// They run late, as [`Fault::Ghost`] does.
    Ghosts,
}

/// On which side of the command's execution a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It was never sent.
    Before,
    /// It ran, and its reply is lost.
    After,
}

/// What became of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It went through.
    Passed,
    /// This fault fired at it.
    Injected(Fault),
    /// It was sent behind a hit by a fault one on the same connection.
    LeftBehind(Behind),
}

/// One step that was seen: a command, a script call, or a whole transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// Who sent it.
    pub actor: String,
    /// On which connection of the actor's, from 1.
    pub connection: u32,
    /// Which step of the actor's it is, from 1, counted over all its connections.
    pub step: u32,
    /// The command's name, in upper case.
    pub command: String,
    /// What the script is called that it runs.
    pub script: Option<String>,
    /// The labels of the commands that a transaction runs.
    pub contents: Vec<String>,
    /// What became of it.
    pub fate: Fate,
}

impl StepRecord {
    /// What the step does, without where: alike for `EVAL` and `EVALSHA`.
    pub fn label(&self) -> String {
        match &self.script {
            Some(script) => script.clone(),
            None if self.contents.is_empty() => self.command.clone(),
            None => format!("{}({})", self.command, self.contents.join(" ")),
        }
    }
}

impl fmt::Display for StepRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { actor, step, connection, .. } = self;
        write!(f, "{actor}#{step} ({connection}) {}", self.label())?;
        match &self.fate {
            Fate::Passed => Ok(()),
            fate => write!(f, " {fate:?}"),
        }
    }
}
