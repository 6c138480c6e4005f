//! The kinds of faults, and the record of each step.

use std::fmt;

/// A fault that the proxy can inject at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The actor dies before the command is sent.
    Before,
    /// The command runs, its reply is lost, and the actor is dead before the reply
    /// arrives.
    After(Behind),
    /// The actor dies. Its command and those that it sent after it run late, on
    /// [`FaultProxy::release_ghosts`](super::FaultProxy::release_ghosts).
    Ghost,
    /// The server replies with this error (code and text) and does nothing.
    Error(String),
    /// Another client first sends this command to the server, for example
    /// `SCRIPT FLUSH`. Then the step's command goes through. The other client repeats
    /// its command if its connection was lost meanwhile.
    Meanwhile(Vec<String>),
    /// The connection breaks, but the actor lives.
    Cut(When),
    /// The actor dies while the server holds its command, and its connections are
    /// closed. If the server did not hold the command, its reply is lost.
    WaiterCloses,
    /// The actor dies while the server holds its command, and the server does not
    /// notice: the connections stay open and unread until
    /// [`FaultProxy::heal`](super::FaultProxy::heal).
    WaiterFreezes,
    /// A blocking command gets the time-out reply at once and does nothing. At another
    /// command this fault does not fire.
    TimeOut,
}

/// The fate of the commands that an actor sent after the command that a fault hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    /// The commands are never sent.
    Dropped,
    /// The commands run late, as with [`Fault::Ghost`].
    Ghosts,
}

/// On which side of the command's execution a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The command was never sent.
    Before,
    /// The command ran, and its reply is lost.
    After,
}

/// The fate of a step: it passed, or a fault hit it or a command before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The step reached the server without a fault.
    Passed,
    /// This fault fired at the step.
    Injected(Fault),
    /// The actor sent the step's command after one that a fault hit, on the same
    /// connection.
    LeftBehind(Behind),
}

/// One recorded step: a command, a script call, or a whole transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRecord {
    /// The name of the actor that sent the step.
    pub actor: String,
    /// The number of the actor's connection, from 1.
    pub connection: u32,
    /// The number of the actor's step, from 1, counted over all its connections.
    pub step: u32,
    /// The command's name, in upper case.
    pub command: String,
    /// The name of the script that the step runs. `None` if it runs no script.
    pub script: Option<String>,
    /// The labels of the commands in the transaction that the step runs. Empty for any
    /// other step.
    pub contents: Vec<String>,
    /// A digest of the command's arguments, or of those of all commands in the
    /// transaction. `None` for a step that arrived while steps did not park.
    pub arguments: Option<u64>,
    /// Whether a fault hit the step, or a command before it.
    pub fate: Fate,
}

impl StepRecord {
    /// A description of the step, without its actor and number. `EVAL` and `EVALSHA`
    /// have the same label.
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
