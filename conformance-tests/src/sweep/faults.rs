//! The faults that can hit a step of the victim.

use super::judge::Late;
use crate::{
    harness::{day, is_thorough},
    proxy::{Behind, Fault, StepRecord, When},
};

/// A fault and its name, which a replay line shows.
#[derive(Debug, Clone)]
pub struct InjectedFault {
    pub(super) fault: Fault,
    pub(super) late: Late,
    pub(super) name: &'static str,
    pub(super) kills: bool,
}

impl InjectedFault {
    /// Whether the actor dies right before the step, or right after it.
    pub(super) fn is_plain_death(&self) -> bool {
        ["before", "after"].contains(&self.name)
    }
}

/// The step arrives while a survivor holds the jobs that the survivors have recovered.
pub(super) fn ghost_while_held() -> InjectedFault {
    let (fault, late, name) = (Fault::Ghost, Late::WhileHeld, "ghost while held");
    InjectedFault { fault, late, name, kills: true }
}

/// The name of the fault that leaves the server without free memory at the chosen step.
pub(super) const FULL: &str = "out of memory";

/// Every fault that can hit a step. Some hit only a step that blocks at the server.
pub(super) fn faults(is_blocking: bool) -> Vec<InjectedFault> {
    let kill = |fault, late, name| InjectedFault { fault, late, name, kills: true };
    let live =
        |fault, name| InjectedFault { fault, late: Late::AtOnce, name, kills: false };
    let mut faults = vec![
        kill(Fault::Before, Late::AtOnce, "before"),
        kill(Fault::After(Behind::Dropped), Late::AtOnce, "after"),
        kill(Fault::After(Behind::Ghosts), Late::AfterRecovery, "after, rest late"),
        kill(Fault::Ghost, Late::AtOnce, "ghost"),
        kill(Fault::Ghost, Late::AfterRecovery, "ghost after recovery"),
        live(Fault::Cut(When::Before), "cut before"),
        live(Fault::Cut(When::After), "cut after"),
        live(Fault::Error("LOADING the suite says so".to_owned()), "error LOADING"),
        live(Fault::Error("OOM the suite says so".to_owned()), "error OOM"),
        live(meanwhile("SCRIPT FLUSH"), "script flush"),
        live(meanwhile("CONFIG SET maxmemory 1"), FULL),
    ];
    if is_blocking {
        faults.push(kill(Fault::WaiterCloses, Late::AtOnce, "waiter closes"));
        faults.push(kill(Fault::WaiterFreezes, Late::AtOnce, "waiter freezes"));
        faults.push(live(Fault::TimeOut, "time out"));
    }
    faults
}

/// Of the steps with a sample of the faults, each fault but the deaths hits one in this many.
const SAMPLE: usize = 3;

/// Which of the faults a run injects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// All faults at each step that may change something.
    Whole,
    /// The share of a day with this number: both deaths at each step, and each other fault at
    /// every third step. Three days in a row inject all.
    OfDay(usize),
}

impl Share {
    /// The share of this run: that of a day if `RELQ_DAY` is set, as in `.ci/run`.
    pub(super) fn of_this_run() -> Self {
        day().map_or(Self::Whole, Self::OfDay)
    }
}

/// The faults that hit a step of a scenario.
///
/// A command that only reads leaves the store as it was, whether it is carried out or not, and
/// whenever it arrives. Almost half of all steps are such commands with which a scenario begins,
/// or which it repeats. These are sampled: both deaths hit each of them, and each other fault
/// hits every third in turn, unless the run is thorough.
pub(super) fn faults_at(
    step: &StepRecord,
    is_sampled: bool,
    scenario: &str,
    share: Share,
) -> Vec<InjectedFault> {
    let is_blocking = step.command.starts_with('B');
    let faults = faults(is_blocking);
    let is_whole = share == Share::Whole && (!is_sampled || is_blocking);
    if is_whole || is_thorough() {
        return faults;
    }
    let day = if let Share::OfDay(day) = share { day } else { 0 };
    let step = step.step as usize + day;
    let hits = |(number, fault): &(usize, InjectedFault)| {
        fault.is_plain_death() || is_in_turn(scenario, step + number, SAMPLE)
    };
    faults.into_iter().enumerate().filter(hits).map(|(_, fault)| fault).collect()
}

/// Whether a sample of one in `one_in` has the member of that number. Each scenario begins the
/// count elsewhere.
pub(super) fn is_in_turn(scenario: &str, number: usize, one_in: usize) -> bool {
    let first = scenario.bytes().map(usize::from).sum::<usize>();
    (first + number).is_multiple_of(one_in)
}

fn meanwhile(command: &str) -> Fault {
    Fault::Meanwhile(command.split(' ').map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::proxy::Fate;

    fn step(step: u32) -> StepRecord {
        StepRecord {
            actor: "victim".to_owned(),
            connection: 1,
            step,
            command: "ZRANGE".to_owned(),
            script: None,
            contents: Vec::new(),
            arguments: None,
            fate: Fate::Passed,
        }
    }

    /// Of three samples, both deaths are in each, and each other fault is in one.
    fn expect_shared(samples: &[Vec<InjectedFault>; 3]) {
        let mut hits = BTreeMap::new();
        for fault in samples.iter().flatten() {
            *hits.entry(fault.name).or_insert(0) += 1;
        }
        assert_eq!(hits.len(), faults(false).len(), "{hits:?}");
        for (name, times) in hits {
            let is_death = ["before", "after"].contains(&name);
            assert_eq!(times, if is_death || is_thorough() { 3 } else { 1 }, "{name}");
        }
    }

    #[test]
    fn three_sampled_steps_in_a_row_share_the_faults() {
        let sampled = |at| faults_at(&step(at), true, "look", Share::Whole);
        expect_shared(&[4, 5, 6].map(sampled));
        let whole = faults_at(&step(4), false, "look", Share::Whole);
        assert_eq!(whole.len(), faults(false).len());
    }

    #[test]
    fn three_days_in_a_row_share_the_faults_of_a_step() {
        let of_day = |day| faults_at(&step(4), false, "look", Share::OfDay(day));
        expect_shared(&[20_788, 20_789, 20_790].map(of_day));
    }
}
