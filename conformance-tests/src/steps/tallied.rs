//! Strikes one act and answers what was counted: for a report.

use std::sync::Arc;

use super::{Tally, drive::one_act, scenarios::SCENARIOS};
use crate::{Profile, Subject, probe, server::Server, store::Store};

/// What an act is judged by, however it was struck: nothing lost, nothing changed,
/// all or nothing, one holder, and recovery.
pub(crate) const RULES: &[&str] = &["R1", "R2", "R5", "R7", "R9", "R21", "R22"];

/// The names of all acts.
pub fn names() -> impl Iterator<Item = &'static str> {
    SCENARIOS.iter().map(|scenario| scenario.name)
}

/// Strikes the act of that name at each step with each fault.
///
/// # Panics
/// When no act has that name, the gate does not run, or what the backend does not
/// claim is not refused.
pub(crate) fn tally<S: Subject + Default>(name: &str) -> Tally {
    let runtime = tokio::runtime::Runtime::new().expect("the system gives a runtime");
    runtime.block_on(Box::pin(async {
        let tally = struck::<S>(name).await;
        for (_, need) in &tally.unclaimed {
            let store = Store::start(S::default(), Profile::Redis);
            probe::instead(&store, *need).await;
        }
        tally
    }))
}

async fn struck<S: Subject + Default>(name: &str) -> Tally {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let tally = one_act(server.address(), Arc::new(S::default()), scenario).await;
    tally.expect("the gate runs")
}
