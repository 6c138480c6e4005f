//! What a mutant is: a healthy backend, one thing that it does wrong, and the checks
//! that have to catch it.

use std::{fmt, pin::Pin, sync::Arc};

use relq_conformance::{overrides::Override, steps::Check};
use relq_core::{Environment, Error, Queue, QueueName};

use crate::judge;

/// Opens a queue on the server at an endpoint.
pub(crate) type Open = fn(&str, &QueueName, &Environment) -> Opening;
pub(crate) type Opening =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, Error>> + Send>>;

/// A small broken backend.
#[derive(Clone, Copy)]
pub(crate) struct Mutant {
    /// What it does wrong, in words.
    pub(crate) name: &'static str,
    /// The healthy backend that it is a change of.
    pub(crate) open: Open,
    /// What is changed in its scripts.
    pub(crate) patches: &'static [Patch],
    /// What it does in place of its own calls.
    pub(crate) overrides: Option<fn() -> Arc<dyn Override>>,
    /// What is said to its server before all else.
    pub(crate) server: &'static [&'static str],
    /// Whether what it does wrong shows only now and then.
    pub(crate) is_racing: bool,
    /// Whether what it does wrong is a small matter, for few cases to see.
    pub(crate) is_narrow: bool,
    /// Each of them catches it, alone.
    pub(crate) caught_by: &'static [CaughtBy],
}

/// In the script of that name, the one place that reads so is to read otherwise.
#[derive(Clone, Copy)]
pub(crate) struct Patch {
    pub(crate) script: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// A check that catches a mutant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaughtBy {
    /// The case of that id, in these words.
    Case(&'static str, &'static str),
    /// A check of an act that is hit by a fault at every step.
    Act(&'static str, Check),
    /// The reference model, in these words.
    Model(&'static str),
}

/// The backend as it is.
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

/// A mutant for few cases to see.
pub(crate) const NARROW: Mutant = Mutant { is_narrow: true, ..HEALTHY };

pub(crate) const fn patch(
    script: &'static str,
    from: &'static str,
    to: &'static str,
) -> Patch {
    Patch { script, from, to }
}

impl Mutant {
    /// Whether no case and no act catches it.
    pub(crate) fn is_for_the_model_alone(&self) -> bool {
        let is_model = |by: &CaughtBy| matches!(by, CaughtBy::Model(_));
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
        }
    }
}
