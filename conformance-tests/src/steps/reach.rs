//! Whether the acts reach all that a backend has and sends.

use std::{collections::BTreeSet, io, sync::Arc};

use super::{
    Tally,
    drive::{actors, labels, one_run},
    scenarios::SCENARIOS,
};
use crate::{Subject, fault::Address, runtime::block_on, server::Server};

/// COVERAGE: each script of the backend is a step of some act, and so is hit by a fault by
/// every fault, and so is each command that a worker sends; what
/// [`conformance!`](crate::conformance) calls for a backend on Redis. Its scripts are
/// those that it loads or runs, and those that its subject names.
///
/// # Panics
/// When a script or command is reached by no act but a worker's, or an act fails with
/// no fault.
pub fn reach<S: Subject + Default>() {
    assert_eq!(
        missed_by_all(S::default()),
        BTreeSet::new(),
        "no act reaches these scripts"
    );
}

/// Plays every act of this subject with no fault; answers the scripts and commands that
/// none of them reached.
///
/// # Panics
/// When an act fails.
pub(crate) fn missed_by_all(subject: impl Subject) -> BTreeSet<String> {
    let (server, named) = (Server::start(), subject.scripts());
    let missed = missed(server.address(), Arc::new(subject), named);
    block_on(Box::pin(missed)).expect("the proxy runs")
}

/// How often acts are played that do not send the same in each run.
const ROUNDS: usize = 5;

async fn missed(
    server: Address,
    subject: Arc<dyn Subject>,
    named: Vec<String>,
) -> io::Result<BTreeSet<String>> {
    let actors = actors(server, subject).await?;
    let (mut tally, mut reached) = (Tally::default(), BTreeSet::new());
    let mut sent = BTreeSet::new();
    let unsteady = SCENARIOS.iter().filter(|scenario| !scenario.is_steady);
    let again = (1..ROUNDS).flat_map(|_| unsteady.clone());
    for (run, scenario) in (0..).zip(SCENARIOS.iter().chain(again)) {
        let is_again = run as usize >= SCENARIOS.len();
        if is_again && named.iter().all(|script| reached.contains(script)) {
            break;
        }
        let claimed = actors.healthy.capabilities();
        if scenario.needs.iter().all(|need| need.is_met_by(claimed)) {
            let steps = one_run(&actors, scenario, None, run, &mut tally).await?;
            let labels = labels(&steps);
            let words = labels.iter().map(|label| first_word(label));
            // Not every run of a worker sends the same.
            if scenario.is_worker { sent.extend(words) } else { reached.extend(words) }
        }
    }
    assert_eq!(tally.failures, [""; 0]);
    let loaded = actors.proxy.scripts();
    let loaded = loaded.iter().map(|label| first_word(label));
    let all = loaded.chain(named).chain(sent);
    Ok(all.filter(|script| !reached.contains(script)).collect())
}

fn first_word(label: &str) -> String {
    label.split(' ').next().unwrap_or_default().to_owned()
}
