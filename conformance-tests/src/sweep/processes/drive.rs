//! Runs the fault sweep of an embedded backend: every scenario, with a fault at every
//! step. Several runs go on in parallel.

use std::{sync::Arc, thread};

use tokio::{sync::Semaphore, task::JoinSet};

use super::{
    Embedded, Side, child, frozen,
    killed::{self, Ran, Step},
    locked,
    order::Spot,
    refused,
    start::Start,
};
use crate::{
    harness::{is_thorough, runtime::block_on},
    sweep::{Again, Atomicity, SCENARIOS, Scenario, StoreContents, Tally},
};

/// The name of the scenario that is also run in an empty folder, where its call creates
/// the store.
const FIRST_ACT: &str = "push";

/// Whether the store already exists when the victim begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Prepared,
    New,
}

/// Injects faults at every step of every scenario of the backend: kills, failures and
/// freezes.
///
/// In a child process of this test, it makes the calls of one scenario and does not
/// return.
///
/// # Panics
/// When the operating system gives no folder, thread or process.
pub fn every_step(subject: Embedded) -> Tally {
    if child::is_child() {
        child::live(subject);
    }
    block_on(inject_all(subject))
}

/// Injects faults at every step of one scenario, for a report.
pub(crate) async fn one_act(subject: Embedded, name: &str) -> Tally {
    let mut tally = Tally::default();
    let acts = SCENARIOS.iter().enumerate().filter(|(_, act)| act.name == name);
    for (index, act) in acts {
        for store in stores(act) {
            tally.add(inject(subject, index, *store).await);
        }
    }
    tally
}

/// Returns the stores on which a scenario is run: a prepared one, and for [`FIRST_ACT`]
/// also an empty folder.
fn stores(act: &Scenario) -> &'static [Store] {
    match act.name {
        FIRST_ACT => &[Store::Prepared, Store::New],
        _ => &[Store::Prepared],
    }
}

async fn inject_all(subject: Embedded) -> Tally {
    // A run mostly waits for the disk and for its child, so more runs than processors
    // can work at the same time.
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let room = Arc::new(Semaphore::new(4 * cores));
    let mut runs = JoinSet::new();
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        if !(subject.chosen)(scenario.name) {
            continue;
        }
        for store in stores(scenario) {
            let room = room.clone();
            runs.spawn(async move {
                let _permit = room.acquire().await;
                inject(subject, index, *store).await
            });
        }
    }
    let mut tally = Tally::default();
    runs.join_all().await.into_iter().for_each(|one| tally.add(one));
    tally
}

async fn inject(subject: Embedded, index: usize, store: Store) -> Tally {
    let mut tally = Tally::default();
    let mut start = match Start::prepare(subject, index).await {
        Ok(start) => start,
        Err(need) => return Tally::unsupported(SCENARIOS[index].name, need),
    };
    if store == Store::New {
        start.forget();
    }
    let Some(steps) = count(&start, &mut tally).await else { return tally };
    tally.steps += steps.len() as u64;
    kill_at_each(&start, &steps, &mut tally).await;
    if store == Store::Prepared {
        lock_out(&start, &mut tally).await;
    }
    let can_freeze = start.scenario.is_steady() && store == Store::Prepared;
    for (at, step) in steps.iter().enumerate() {
        let spot = Spot { step: at, side: Side::Before };
        let refusals = subject.refusals.iter().map(Some);
        let faults = refusals.chain(can_freeze.then_some(None));
        for (_, fault) in
            faults.enumerate().filter(|(number, _)| hits(step, at + number))
        {
            let (name, ran) = match fault {
                Some(refusal) => {
                    (refusal.name, refused::run(&start, spot, *refusal).await)
                }
                None => ("frozen", frozen::run(&start, spot).await),
            };
            note(&start, &mut tally, (spot, &step.label, name), &ran);
        }
    }
    tally
}

/// Of the steps that only read, each failure and each freeze hits one in this many.
const SAMPLE: usize = 3;

/// Whether the failure or freeze whose turn it is hits the step. A step that only reads
/// leaves the store as it was, so these are sampled, unless the run is thorough.
fn hits(step: &Step, turn: usize) -> bool {
    !step.only_reads || turn.is_multiple_of(SAMPLE) || is_thorough()
}

/// Runs the scenario while another process holds the lock of the store.
async fn lock_out(start: &Start, tally: &mut Tally) {
    let ran = match locked::Holder::find(start.subject).await {
        Some(holder) => locked::run(start, holder).await,
        None => return tally.failures.push("no child can lock the store".to_owned()),
    };
    tally.runs += 1;
    tally.faults_fired += 1;
    if let Err(wrong) = ran {
        tally
            .failures
            .push(format!("{}, locked by another process: {wrong}", start.name()));
    }
}

/// Runs the scenario twice without a fault, and returns the victim's steps. Adds a failure
/// to the tally if the second run has other steps. `None` if a run fails.
async fn count(start: &Start, tally: &mut Tally) -> Option<Vec<Step>> {
    let (first, second) =
        (killed::run(start, None).await, killed::run(start, None).await);
    let name = start.name();
    if first.steps != second.steps && start.scenario.is_steady() {
        let (first, second) = (&first.steps, &second.steps);
        tally.failures.push(format!("{name}: not repeatable: {first:?}, {second:?}"));
    }
    match first.found.and(second.found) {
        Ok(_) => Some(first.steps),
        Err(wrong) => {
            tally.failures.push(format!("{name}: {wrong}"));
            None
        }
    }
}

/// Kills a child before and after each step. Checks that the calls take effect at one
/// moment: if they have taken effect after a kill at one step, they must also have
/// taken effect after a kill at each later step.
///
/// Between two steps a process changes nothing that others see. So a kill before a step
/// counts as one after the step before it, too, unless the run is thorough.
async fn kill_at_each(start: &Start, steps: &[Step], tally: &mut Tally) {
    let mut moments = Vec::new();
    let each_side = is_thorough() || !start.scenario.is_steady();
    for (at, step) in steps.iter().enumerate() {
        let is_last = at + 1 == steps.len();
        let sides: &[_] = match each_side || is_last {
            true => &[Side::Before, Side::After],
            false => &[Side::Before],
        };
        for side in sides {
            let spot = Spot { step: at, side: *side };
            let ran = killed::run(start, Some(spot)).await;
            let fault = if *side == Side::Before { "before" } else { "after" };
            note(start, tally, (spot, &step.label, fault), &ran);
            if ran.fired && at > 0 && !each_side {
                let before = steps[at - 1].label.clone();
                tally.coverage.entry(before).or_default().insert("after");
            }
            moments.extend(ran.found.ok());
        }
    }
    if !happens_at_one_moment(start, &moments) {
        let name = start.name();
        tally.failures.push(format!(
            "{name}: done after an early kill, undone after a later one: {moments:?}"
        ));
    }
}

fn happens_at_one_moment(start: &Start, moments: &[StoreContents]) -> bool {
    let promise = &start.promise;
    let repeats = start.scenario.again == Again::ByAnyone;
    if promise.atomicity == Atomicity::EachByItself
        || !start.scenario.is_steady()
        || repeats
    {
        return true;
    }
    moments.is_sorted_by_key(|found| *found == promise.done)
}

/// Adds a run to the tally, with its failure if there is one.
fn note(
    start: &Start,
    tally: &mut Tally,
    (spot, label, fault): (Spot, &str, &'static str),
    ran: &Ran,
) {
    let replay = format!("{}, step {} ({label}), {fault}", start.name(), spot.step);
    if let Err(wrong) = &ran.found {
        tally.failures.push(format!("{replay}: {wrong}"));
    }
    if ran.fired {
        tally.runs += 1;
        tally.faults_fired += 1;
        tally.coverage.entry(label.to_owned()).or_default().insert(fault);
    } else if start.scenario.is_steady() {
        tally.runs += 1;
        tally.failures.push(format!("{replay}: the fault did not fire"));
    }
}
