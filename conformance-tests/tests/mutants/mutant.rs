//! The parts of a mutant: a healthy backend, one bug, and the checks that must catch
//! it.

use std::{fmt, pin::Pin, sync::Arc};

use relq_conformance::{overrides::Override, sweep::Check};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::judge;

/// Opens a queue on the server at an endpoint.
pub(crate) type Open = fn(&str, &QueueName, &Environment) -> Opening;
pub(crate) type Opening =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, Error>> + Send>>;

/// A small broken backend.
#[derive(Clone, Copy)]
pub(crate) struct Mutant {
    /// A short description of the bug.
    pub(crate) name: &'static str,
    /// The healthy backend that the mutant changes.
    pub(crate) open: Open,
    /// Changes of the backend's scripts.
    pub(crate) patches: &'static [Patch],
    /// Broken calls that replace those of the healthy backend. `None` if there are
    /// none.
    pub(crate) overrides: Option<fn() -> Arc<dyn Override>>,
    /// A command that is sent to the mutant's server before the check; may be empty.
    pub(crate) server: &'static [&'static str],
    /// Whether the bug depends on timing, so that a check catches it only in some runs.
    pub(crate) is_racing: bool,
    /// Whether the bug is so small that only a few cases can catch it.
    pub(crate) is_narrow: bool,
    /// The checks that must catch the mutant, each of them on its own.
    pub(crate) caught_by: &'static [CaughtBy],
}

/// A change of the script with this name. The old text must occur in it exactly once.
#[derive(Clone, Copy)]
pub(crate) struct Patch {
    pub(crate) script: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// A check that catches a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaughtBy {
    /// The case with this id must fail, with this text in its message.
    Case(&'static str, &'static str),
    /// The scenario of this name, with faults injected at every step, must fail in this
    /// check.
    Act(&'static str, Check),
    /// The reference model must fail in random sequences, with this text in its
    /// message.
    Model(&'static str),
    /// The reference model must fail in the sequences that combine two options, with
    /// this text in its message.
    Pairs(&'static str),
    /// The search through every order of the commands, with at most one death, must fail
    /// in the scene that the first text describes, with the second text in its message.
    Orders(&'static str, &'static str),
}

impl CaughtBy {
    /// Whether the check runs on each day, and not only when it is the mutant's turn. All
    /// sweeps together show which check of them is needed.
    pub(crate) fn is_of_each_day(&self) -> bool {
        matches!(self, Self::Act(..) | Self::Pairs(_))
    }
}

/// The zset backend without any change.
pub(crate) const HEALTHY: Mutant = Mutant {
    name: "none",
    open: judge::open_zset,
    patches: &[],
    overrides: None,
    server: &[],
    is_racing: false,
    is_narrow: false,
    caught_by: &[],
};

/// The zset backend as the base of mutants whose bugs only a few test cases can catch.
pub(crate) const NARROW: Mutant = Mutant { is_narrow: true, ..HEALTHY };

pub(crate) const fn patch(
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Patch {
    Patch { script, from, to }
}

impl Mutant {
    /// Whether only the reference model judges the checks that the mutant names. No test
    /// case and no fault sweep may catch it then.
    pub(crate) fn is_for_the_model_alone(&self) -> bool {
        let is_model =
            |by: &CaughtBy| matches!(by, CaughtBy::Model(_) | CaughtBy::Orders(..));
        !self.caught_by.is_empty() && self.caught_by.iter().all(is_model)
    }
}

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mutant({})", self.name)
    }
}

impl fmt::Display for CaughtBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case(id, _) => write!(f, "`{id}`"),
            Self::Act(act, check) => write!(f, "{check} in `steps::{act}`"),
            Self::Model(_) => f.write_str("the model"),
            Self::Pairs(_) => f.write_str("the model's pairs of options"),
            Self::Orders(..) => f.write_str("every order of the commands"),
        }
    }
}
