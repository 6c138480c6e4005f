//! Injects faults into one act and returns the counts, for a report.

use std::sync::Arc;

use relq_core::capabilities::Capability;

use super::{
    Tally,
    drive::one_act,
    scenarios::{SCENARIOS, Scenario},
};
use crate::{
    Need, Profile, Subject,
    harness::{probe, runtime::block_on, store::Store},
    server::Server,
    sweep::processes::{self, Embedded},
};

/// The rules that judge an act, whatever fault hits it: nothing lost, nothing changed,
/// all or nothing, one holder, and recovery.
pub(crate) const RULES: &[&str] = &["R1", "R2", "R5", "R7", "R9", "R21", "R22"];

/// The names of all acts.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}

/// The needs of the act of that name.
pub(crate) fn needs(name: &str) -> &'static [Need] {
    let act = SCENARIOS.iter().find(|scenario| scenario.name == name);
    act.map_or(&[], |scenario| scenario.needs)
}

/// The names of the acts that a backend without that option supports.
pub fn names_without(option: Capability) -> impl Iterator<Item = &'static str> {
    let can_do = move |act: &&Scenario| !act.needs.contains(&Need::Option(option));
    SCENARIOS.iter().filter(can_do).map(|act| act.name)
}

/// Injects every fault at every step of the act of that name.
///
/// # Panics
/// When no act has that name, when the proxy does not run, or when the backend accepts
/// an option that it does not support.
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

/// How faults are injected into an act.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Injection {
    /// Faults at the proxy, for a backend on Redis.
    AtTheProxy,
    /// Kills, failures and freezes of processes, for an embedded backend.
    ToProcesses(Embedded),
}

async fn injected<S: Subject + Default>(name: &str) -> Tally {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let tally = one_act(server.address(), Arc::new(S::default()), scenario).await;
    tally.expect("the proxy runs")
}
