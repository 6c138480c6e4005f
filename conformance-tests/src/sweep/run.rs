//! Injects faults into one act, as a test with the name of the act.

use std::sync::Arc;

use super::{
    drive::one_act,
    faults::Share,
    scenarios::{SCENARIOS, Scenario},
};
use crate::{
    Profile, Subject,
    harness::{probe, runtime::block_on_this_thread, store::Store},
    server::Server,
};

/// Injects every fault at every step of the act of that name, on a server of its own. With
/// `RELQ_DAY` set to a number, this is a share of the faults, as `conformance-tests/README.md`
/// says.
/// [`Tests`](crate::Tests) calls it for a backend on Redis. If the backend
/// does not support an option that the act needs, a probe checks instead that the
/// option is refused.
///
/// # Panics
/// When the backend breaks a promise, when a fault did not fire, when a step was not
/// hit both before and after it ran (COVERAGE), or when no act has that name.
pub fn run<S: Subject + Default>(name: &str) {
    block_on_this_thread(Box::pin(inject::<S>(named(name))));
}

/// Injects faults into the act of that name on this subject, and returns the failures,
/// each with the names of the [checks](super::Check) that did not pass. Use it for a
/// subject that must fail, such as a mutant.
///
/// # Panics
/// When no act has that name, or the proxy does not run.
pub fn failures(subject: impl Subject, name: &str) -> Vec<String> {
    let (server, scenario) = (Server::start(), named(name));
    let injected =
        one_act(server.socket().into(), Arc::new(subject), scenario, Share::Whole);
    let tally = block_on_this_thread(Box::pin(injected)).expect("the proxy runs");
    assert!(
        tally.unsupported.is_empty(),
        "{name} needs an option that is not supported"
    );
    tally.failures
}

fn named(name: &str) -> &'static Scenario {
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    scenario.unwrap_or_else(|| panic!("there is no act {name}"))
}

async fn inject<S: Subject + Default>(scenario: &'static Scenario) {
    let server = Server::start();
    let subject = Arc::new(S::default());
    let tally =
        one_act(server.address(), subject, scenario, Share::of_this_run()).await;
    let tally = tally.expect("the proxy runs");
    tally.expect_no_failure();
    for (_, need) in &tally.unsupported {
        println!("unsupported: {need:?}");
        let store = Store::start(S::default(), Profile::Redis);
        probe::instead(&store, *need).await;
    }
}
