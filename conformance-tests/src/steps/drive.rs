//! Runs every scenario at every step with every fault.

use std::{io, sync::Arc};

use queue_core::{Capability, Environment, QueueName, WorkerId};

use super::{
    Check, Tally,
    crew::{Crew, ELSEWHERE, Hand, Sight, Stage},
    faults::{FULL, Struck, faults},
    judge::{Late, take_over},
    known::{known, settled},
    outcome::{End, Knowledge},
    scenarios::{SCENARIOS, Scenario},
    scenes::Scene,
    victim::{Heard, Part, act},
};
use crate::{
    Subject,
    environment::SeededRandomness,
    fault::{Address, Endpoint, Fate, Gate, StepRecord, VirtualClock},
    runtime::Panics,
};

const QUEUE: &str = "jobs";
const VICTIM: &str = "victim";

/// How often an act is struck once more for what slipped past.
const ROUNDS: u32 = 20;

/// Strikes a backend in each act, on the server at `server`, which is emptied for
/// each run.
///
/// # Errors
/// When the operating system does not give what the gate needs, or the server does
/// not answer.
pub async fn every_step(
    server: impl Into<Address>,
    subject: Arc<dyn Subject>,
) -> io::Result<Tally> {
    let (server, mut tally) = (server.into(), Tally::default());
    for scenario in SCENARIOS {
        tally.add(one_act(server.clone(), Arc::clone(&subject), scenario).await?);
    }
    Ok(tally)
}

/// Strikes a backend in one act.
pub(crate) async fn one_act(
    server: Address,
    subject: Arc<dyn Subject>,
    scenario: &Scenario,
) -> io::Result<Tally> {
    let crew = crew(server, subject).await?;
    let capabilities = crew.hand.capabilities();
    let missing = scenario.needs.iter().find(|need| !need.is_met_by(capabilities));
    match missing {
        None => strike(&crew, scenario).await,
        Some(need) => Ok(Tally::unclaimed(scenario.name, *need)),
    }
}

pub(super) async fn crew(
    server: Address,
    subject: Arc<dyn Subject>,
) -> io::Result<Crew> {
    let clock = VirtualClock::new();
    let gate = Gate::start(server, clock.clone())?;
    subject.prepare(&gate).await?;
    let endpoint = gate.actor("hand")?;
    let random = Arc::new(SeededRandomness::new(1));
    let environment = Environment::new(Arc::new(clock.clone()), random);
    let opened = subject.connect(endpoint.url(), &queue(), &environment).await;
    let queue = opened.map_err(|error| io::Error::other(error.full_message()))?;
    let hand = Hand { queue, worker: worker("hand") };
    let mut stage = Stage { clock, hand, elsewhere: None };
    if stage.hand.capabilities().claims(Capability::Batches) {
        let name = QueueName::new(ELSEWHERE).expect("the name is valid");
        let opened = subject.connect(endpoint.url(), &name, &environment).await;
        let queue = opened.map_err(|error| io::Error::other(error.full_message()))?;
        stage.elsewhere = Some(Hand { queue, worker: worker("hand") });
    }
    Ok(Crew { gate, environment, subject, stage, panics: Panics::here() })
}

async fn strike(crew: &Crew, scenario: &Scenario) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut run = 0;
    let first = one_run(crew, scenario, None, run, &mut tally).await?;
    run += 1;
    let second = one_run(crew, scenario, None, run, &mut tally).await?;
    if labels(&first) != labels(&second) && scenario.is_steady {
        let (first, second) = (labels(&first), labels(&second));
        let name = scenario.name;
        tally.failures.push(format!(
            "{name}: {}: {first:?}, then {second:?}",
            Check::Deterministic
        ));
    }
    tally.steps += first.len() as u64;
    for step in &first {
        let is_blocking = step.command.starts_with('B');
        for struck in faults(is_blocking) {
            run += 1;
            let at = Some((step.step, &struck));
            let seen = one_run(crew, scenario, at, run, &mut tally).await?;
            // On a busy machine a claim that waits looks again more often, so that
            // the first run may have had more steps than the others.
            if !scenario.is_steady && seen.len() < step.step as usize {
                break;
            }
        }
    }
    let is_each_time = |step: &&StepRecord| is_among(&second, step);
    let each_time = first.iter().filter(is_each_time).map(StepRecord::label);
    let each_time: Vec<_> = each_time.collect();
    strike_the_rest(crew, scenario, &first, &each_time, run, &mut tally).await?;
    Ok(tally)
}

/// COVERAGE: where the order of the steps changes from run to run, a command may have
/// slipped past a fault. It is struck until each was seen with `before` and `after`; of
/// an act whose steps vary, each that it sent in both of its runs without a fault.
async fn strike_the_rest(
    crew: &Crew,
    scenario: &Scenario,
    steps: &[StepRecord],
    each_time: &[String],
    mut run: u32,
    tally: &mut Tally,
) -> io::Result<()> {
    // What a whole worker sends now and then, other acts send each time.
    if scenario.is_worker && !tally.coverage.is_empty() {
        return Ok(());
    }
    let is_done = |tally: &Tally| {
        let is_all_struck = each_time.iter().all(|label| tally.covers(label));
        let is_enough = !scenario.is_steady || tally.is_covered();
        !tally.coverage.is_empty() && is_all_struck && is_enough
    };
    for _ in 0..ROUNDS {
        // At each place: which command comes there is not the same each time.
        for step in steps {
            for death in faults(false).iter().filter(|struck| struck.is_plain_death()) {
                if is_done(tally) {
                    return Ok(());
                }
                run += 1;
                one_run(crew, scenario, Some((step.step, death)), run, tally).await?;
            }
        }
    }
    if !is_done(tally) {
        let name = scenario.name;
        tally.failures.push(format!(
            "{name}: {}: {:?}",
            Check::Coverage,
            tally.coverage
        ));
    }
    Ok(())
}

fn is_among(steps: &[StepRecord], step: &StepRecord) -> bool {
    steps.iter().any(|other| other.label() == step.label())
}

pub(super) fn labels(steps: &[StepRecord]) -> Vec<String> {
    steps.iter().map(StepRecord::label).collect()
}

/// One run: prepare, act, take over, judge. Answers the victim's steps.
pub(super) async fn one_run(
    crew: &Crew,
    scenario: &Scenario,
    strike: Option<(u32, &Struck)>,
    run: u32,
    tally: &mut Tally,
) -> io::Result<Vec<StepRecord>> {
    crew.gate.tell(&["FLUSHALL"]).await?;
    if !scenario.is_new {
        crew.stage.write_again().await;
    }
    let name = format!("{VICTIM}-{run}");
    let (victim, endpoint) = (worker(&name), crew.gate.actor(&name)?);
    let scene = (scenario.prepare)(crew, &victim).await;
    if let Some((step, struck)) = strike {
        crew.gate.plan(&name, step, struck.fault.clone());
    }
    let part =
        Part { worker: victim, held: scene.held.clone(), ran: scene.ran.clone() };
    let struck = strike.map(|(_, struck)| struck);
    let heard = have_acted(crew, scenario, &endpoint, (part.clone(), struck)).await?;
    let steps = steps_of(crew, &name);
    let known = known(&heard, struck, &steps);
    let known = settled(crew, scenario, (part, struck, &heard), known).await;
    let judged = judged(crew, &scene, struck, known).await;
    let replay = replay(scenario, strike);
    if let Err(wrong) = judged {
        tally.failures.push(format!("{replay}: {wrong}; heard {heard:?}"));
    }
    for panic in crew.panics.take() {
        tally.failures.push(format!("{replay}: {}: {panic}", Check::Panic));
    }
    if !count(tally, strike, &steps) && scenario.is_steady {
        tally
            .failures
            .push(format!("{replay}: {}: the fault did not fire", Check::FaultFired));
    }
    Ok(steps)
}

/// Has the victim act, and others do what they do meanwhile; then it is gone.
async fn have_acted(
    crew: &Crew,
    scenario: &Scenario,
    endpoint: &Endpoint,
    (part, struck): (Part, Option<&Struck>),
) -> io::Result<Heard> {
    let queue = queue();
    let is_full = struck.is_some_and(|struck| struck.name == FULL);
    let acting = async {
        let heard = act(crew, &queue, endpoint, part, scenario.act).await;
        crew.gate.kill(endpoint).await;
        heard
    };
    let room = async move {
        if is_full {
            // Nor is it filled any more: others would be refused.
            crew.gate.heal().await.expect("nothing is frozen");
            make_room(crew).await.expect("the server takes it");
        }
    };
    let sight = Sight::of(endpoint, Box::pin(room));
    let (heard, ()) = tokio::join!(acting, (scenario.meanwhile)(crew, sight));
    if is_full {
        make_room(crew).await?;
    }
    Ok(heard)
}

async fn make_room(crew: &Crew) -> io::Result<()> {
    crew.gate.tell(&["CONFIG", "SET", "maxmemory", "0"]).await.map(drop)
}

/// Lets the survivors take over, and holds what they find against the promise.
async fn judged(
    crew: &Crew,
    scene: &Scene,
    struck: Option<&Struck>,
    known: Result<Knowledge, String>,
) -> Result<(), String> {
    let late = struck.map_or(Late::AtOnce, |struck| struck.late);
    let found = take_over(crew, &scene.held, late).await;
    let (known, mut found) = (known?, found?);
    for payload in scene.ran.payloads() {
        found.outcome.add(payload, End::Ran);
    }
    scene.promise.bearing(struck.is_some()).judge(&found, known)
}

fn steps_of(crew: &Crew, name: &str) -> Vec<StepRecord> {
    crew.gate.steps().into_iter().filter(|step| step.actor == name).collect()
}

/// Counts what fired; answers whether what was planned did.
fn count(
    tally: &mut Tally,
    strike: Option<(u32, &Struck)>,
    steps: &[StepRecord],
) -> bool {
    let Some((_, struck)) = strike else { return true };
    let fired = steps.iter().find(|step| matches!(step.fate, Fate::Struck(_)));
    if let Some(step) = fired {
        tally.runs += 1;
        tally.faults_fired += 1;
        tally.coverage.entry(step.label()).or_default().insert(struck.name);
    }
    fired.is_some()
}

fn replay(scenario: &Scenario, strike: Option<(u32, &Struck)>) -> String {
    match strike {
        None => scenario.name.to_owned(),
        Some((step, struck)) => {
            format!("{}, step {step}, {}", scenario.name, struck.name)
        }
    }
}

fn queue() -> QueueName {
    QueueName::new(QUEUE).expect("the name is valid")
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the name is valid")
}
