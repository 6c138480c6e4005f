//! Checks that the acts execute all scripts and commands of a backend.

use std::{collections::BTreeSet, io, sync::Arc};

use relq_core::capabilities::Capability;

use super::{
    Tally,
    drive::actors,
    one_run::{labels, one_run},
    scenarios::SCENARIOS,
};
use crate::{
    Subject, harness::runtime::block_on_this_thread, proxy::Address, server::Server,
};

/// COVERAGE: checks that each script of the backend, and each command that a worker
/// sends, is a step of some act, so that every fault hits it. [`Tests`](crate::Tests)
/// calls this for a backend on Redis. The scripts are those that the backend loads or
/// runs, and those that its subject names.
///
/// # Panics
/// When only a worker's act reaches a script or command, or no act does, or an act
/// fails without a fault.
pub fn reach<S: Subject + Default>() {
    assert_eq!(
        missed_by_all(S::default()),
        BTreeSet::new(),
        "no act reaches these scripts"
    );
}

/// Runs every act of this subject without a fault. Returns the scripts and commands
/// that no act executed.
///
/// # Panics
/// When an act fails.
pub(crate) fn missed_by_all(subject: impl Subject) -> BTreeSet<String> {
    let (server, named) = (Server::start(), subject.scripts());
    let missed = missed(server.address(), Arc::new(subject), named);
    block_on_this_thread(Box::pin(missed)).expect("the proxy runs")
}

/// The scripts that only a queue with these options sends. A queue of several parts has
/// neither, and its parts load them.
const OF_OPTIONS: [(&str, Capability); 10] = [
    ("find_job", Capability::Inspect),
    ("list_workers", Capability::Inspect),
    ("put_schedule", Capability::Schedules),
    ("push_tick", Capability::Schedules),
    ("read_results", Capability::Results),
    ("remove_worker", Capability::Inspect),
    ("report_progress", Capability::Results),
    ("report_worker", Capability::Inspect),
    ("restore", Capability::Restore),
    ("run_now", Capability::Inspect),
];

/// How often an act is repeated if it sends different commands in each run.
const ROUNDS: usize = 5;

async fn missed(
    server: Address,
    subject: Arc<dyn Subject>,
    named: Vec<String>,
) -> io::Result<BTreeSet<String>> {
    let actors = actors(server, subject).await?;
    let (mut tally, mut reached) = (Tally::default(), BTreeSet::new());
    let mut sent = BTreeSet::new();
    let unsteady = SCENARIOS.iter().filter(|scenario| !scenario.is_steady());
    let again = (1..ROUNDS).flat_map(|_| unsteady.clone());
    for (run, scenario) in (0..).zip(SCENARIOS.iter().chain(again)) {
        let is_again = run as usize >= SCENARIOS.len();
        if is_again && named.iter().chain(&sent).all(|it| reached.contains(it)) {
            break;
        }
        let claimed = actors.healthy.capabilities();
        if scenario.needs.iter().all(|need| need.is_met_by(claimed)) {
            let steps = one_run(&actors, scenario, None, None, run, &mut tally).await?;
            let labels = labels(&steps);
            let words = labels.iter().map(|label| first_word(label));
            // A worker's commands differ from run to run, so they do not count as
            // reached.
            let seen = if scenario.is_worker() { &mut sent } else { &mut reached };
            seen.extend(words);
        }
    }
    tally.expect_no_failure();
    let loaded = actors.proxy.scripts();
    let loaded = loaded.iter().map(|label| first_word(label));
    let all = loaded.chain(named).chain(sent);
    let capabilities = actors.healthy.capabilities();
    let can_be_sent = |script: &String| {
        let of_option = OF_OPTIONS.iter().find(|(name, _)| name == script);
        of_option.is_none_or(|(_, option)| capabilities.supports(*option))
    };
    Ok(all.filter(can_be_sent).filter(|script| !reached.contains(script)).collect())
}

fn first_word(label: &str) -> String {
    label.split(' ').next().unwrap_or_default().to_owned()
}
