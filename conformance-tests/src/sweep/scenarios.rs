//! The scenarios: the calls that faults are injected into, with the state before them
//! and which actors may repeat them.
//!
//! Most scenarios are lines of the reference model's language
//! (`spec/operation/text.rs`). The reference model knows what the calls promise. Worker
//! `a` is the victim, and worker `b` is a worker that has died.

use relq_core::Error;

use super::{
    BoxFuture,
    actors::{Survivors, VictimObserver},
    promise::Atomicity,
    victim::Victim,
};
use crate::{
    Need,
    spec::{
        operation::{Act, Operation, payloads_before},
        sequence::Sequence,
    },
};

/// The calls that a victim makes, and the state of the store before them.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    /// The calls that prepare the store, as lines of the model's language.
    pub(super) setup: &'static str,
    pub(super) calls: Calls,
    pub(crate) again: Again,
    /// Whether the calls may take effect in part.
    pub(super) atomicity: Atomicity,
    /// Whether the victim makes the first write to the queue (R25).
    pub(crate) is_new: bool,
}

/// The calls of a victim. The suite injects every fault at each step of these calls.
#[derive(Clone, Copy)]
pub(super) enum Calls {
    /// Lines of the model's language.
    Lines(&'static str),
    /// Claims that wait, and the push that another actor makes meanwhile.
    WaitingClaims { claim: OwnCalls, push: Meanwhile },
    /// A whole worker. Its process records the jobs that it runs.
    Worker(OwnCalls),
}

/// Calls that the model's language cannot express.
type OwnCalls = fn(Victim) -> BoxFuture<'static, Result<(), Error>>;

/// The calls that other actors make while the victim makes its own.
type Meanwhile = for<'a> fn(&'a Survivors, VictimObserver<'a>) -> BoxFuture<'a, ()>;

/// Which actor may repeat the victim's calls if it is not known whether they took
/// effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// No actor, because a repetition might store or change something twice (R4).
    Never,
    /// The victim, if its error says that a retry is safe.
    AsTheVictim,
    /// Any actor, also after the victim's death.
    ByAnyone,
}

impl Scenario {
    /// The operations of the setup, each with the number of payloads before it.
    pub(super) fn setup(&self) -> Vec<(Operation, usize)> {
        numbered(self.setup, &mut 0)
    }

    /// The operations of the victim, each with the number of payloads before it. None if
    /// the language has no line for its calls.
    pub(super) fn operations(&self) -> Vec<(Operation, usize)> {
        let Calls::Lines(lines) = self.calls else { return Vec::new() };
        let mut used = 0;
        numbered(self.setup, &mut used);
        numbered(lines, &mut used)
    }

    /// Makes the victim's calls, until one fails.
    pub(crate) async fn act(&self, victim: Victim) -> Result<(), Error> {
        match self.calls {
            Calls::Lines(_) => victim.make(self.operations()).await,
            Calls::WaitingClaims { claim: own, .. } | Calls::Worker(own) => {
                own(victim).await
            }
        }
    }

    /// Makes the calls of the other actors while the victim makes its own.
    pub(crate) async fn meanwhile(
        &self,
        actors: &Survivors,
        victim: VictimObserver<'_>,
    ) {
        if let Calls::WaitingClaims { push, .. } = self.calls {
            push(actors, victim).await;
        }
    }

    /// Whether other actors make calls while the victim makes its own.
    pub(crate) fn has_others(&self) -> bool {
        matches!(self.calls, Calls::WaitingClaims { .. })
    }

    /// Whether each run sends the same commands in the same order.
    pub(crate) fn is_steady(&self) -> bool {
        matches!(self.calls, Calls::Lines(_))
    }

    /// Whether the victim is a whole worker.
    pub(crate) fn is_worker(&self) -> bool {
        matches!(self.calls, Calls::Worker(_))
    }

    /// Whether each change by the victim's calls needs a receipt. Such a change is
    /// refused once other actors have taken over the jobs (R7).
    pub(crate) fn is_by_receipt(&self) -> bool {
        let settles = |(one, _): &(Operation, usize)| {
            matches!(
                one.act,
                Act::Settle(_) | Act::SettleAndClaim { .. } | Act::Report { .. }
            )
        };
        self.is_steady() && self.operations().iter().all(settles)
    }
}

/// Parses lines. Returns each operation with the number of payloads before it, and adds
/// its own to `used`.
fn numbered(lines: &str, used: &mut usize) -> Vec<(Operation, usize)> {
    if lines.is_empty() {
        return Vec::new();
    }
    let Sequence { operations, .. } = lines.parse().expect("lines of the language");
    let payloads = payloads_before(&operations, used);
    operations.into_iter().zip(payloads).collect()
}

macro_rules! scenario {
    ($name:ident, $setup:literal => $lines:literal $(, $field:ident: $value:expr)*) => {
        scenario!($name, $setup => Calls::Lines($lines) $(, $field: $value)*)
    };
    ($name:ident, $setup:literal => $calls:expr $(, $field:ident: $value:expr)*) => {
        Scenario {
            $($field: $value,)*
            ..Scenario {
                name: stringify!($name),
                needs: &[],
                setup: $setup,
                calls: $calls,
                again: Again::AsTheVictim,
                atomicity: Atomicity::AllOrNone,
                is_new: false,
            }
        }
    };
}

mod table;

pub(crate) use table::SCENARIOS;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_a_scenario_can_be_read() {
        for scenario in SCENARIOS {
            let (setup, operations) = (scenario.setup(), scenario.operations());

            assert_eq!(
                setup.is_empty(),
                scenario.setup.is_empty(),
                "{}",
                scenario.name
            );
            assert_eq!(
                !operations.is_empty(),
                scenario.is_steady(),
                "{}",
                scenario.name
            );
        }
    }
}
