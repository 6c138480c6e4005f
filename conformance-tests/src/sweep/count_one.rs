//! Injects faults into the calls of one scenario and counts them, for a report.

use std::sync::Arc;

use relq_core::capabilities::Capability;

use super::{
    Tally,
    drive::one_act,
    faults::Share,
    scenarios::{SCENARIOS, Scenario},
};
use crate::{
    Need, Profile, Subject,
    harness::{probe, runtime::block_on, store::Store},
    server::Server,
    sweep::processes::{self, Embedded},
};

/// The rules that every run with a fault tests, whatever the fault is: no job is lost
/// (R1) or changed (R2), a push is stored completely or not at all (R5), only the holder
/// of a lease can settle (R7), expired jobs are recovered (R9), errors are clear (R21),
/// and futures may be dropped (R22).
pub(crate) const RULES: &[&str] = &["R1", "R2", "R5", "R7", "R9", "R21", "R22"];

/// The names of all scenarios that faults are injected into.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}

/// The options that a backend must support for the scenario of that name.
pub(crate) fn needs(name: &str) -> &'static [Need] {
    let act = SCENARIOS.iter().find(|scenario| scenario.name == name);
    act.map_or(&[], |scenario| scenario.needs)
}

/// The names of the scenarios that a backend without that option can run.
pub fn names_without(option: Capability) -> impl Iterator<Item = &'static str> {
    let can_do = move |act: &&Scenario| !act.needs.contains(&Need::Option(option));
    SCENARIOS.iter().filter(can_do).map(|act| act.name)
}

/// Injects every fault at every step of the scenario of that name.
///
/// # Panics
/// When no scenario has that name, when the proxy does not run, or when the backend
/// accepts an option that it does not support.
pub(crate) fn tally<S: Subject + Default>(name: &str, how: Injection) -> Tally {
    block_on(Box::pin(async {
        let (tally, profile) = match how {
            Injection::AtTheProxy => (injected::<S>(name).await, Profile::Redis),
            Injection::ToProcesses(subject) => {
                (processes::one_act(subject, name).await, Profile::Embedded)
            }
        };
        for (_, need) in &tally.unsupported {
            let store = Store::start(S::default(), profile);
            probe::instead(&store, *need).await;
        }
        tally
    }))
}

/// Injects every fault at every step of the act of that name on an embedded backend.
/// [`Tests`](crate::Tests) calls it.
///
/// # Panics
/// When the backend breaks a promise, when no fault fired, or when it has no hook at its
/// steps.
pub(crate) fn run_in_processes<S: Subject + Default>(name: &str) {
    let hook = S::default().processes();
    let hook = hook.expect("the subject has `processes`, the hook at its steps");
    let tally = tally::<S>(name, Injection::ToProcesses(hook));
    tally.expect_no_failure();
    let is_tested = tally.faults_fired > 0 || !tally.unsupported.is_empty();
    assert!(is_tested, "FAULT-FIRED: no fault fired in {name}");
}

/// The way in which the suite injects faults into calls.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Injection {
    /// By the fault proxy, for a backend on Redis.
    AtTheProxy,
    /// By kills, failures and freezes of processes, for an embedded backend.
    ToProcesses(Embedded),
}

async fn injected<S: Subject + Default>(name: &str) -> Tally {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let subject = Arc::new(S::default());
    let tally = one_act(server.address(), subject, scenario, Share::Whole).await;
    tally.expect("the proxy runs")
}
