//! Runs every scenario again and again, until each fault has hit each of its steps.

use std::{io, sync::Arc};

use relq_core::{QueueName, WorkerId, capabilities::Capability};

use super::{
    Check, Tally,
    actors::{Actors, HealthyActor, Survivors},
    faults::{InjectedFault, Share, faults, faults_at},
    one_run::{labels, one_run},
    rescue::die_at_the_rescue,
    scenarios::{SCENARIOS, Scenario},
};
use crate::{
    Subject,
    harness::{environment::seeded, runtime::Panics},
    proxy::{Address, FaultProxy, StepRecord, VirtualClock},
    spec::draft::elsewhere,
};

const QUEUE: &str = "jobs";

/// Makes the server return a hash of a few jobs in one page of a scan. Without this
/// setting the number of pages depends on the order of the fields, which is random. Then
/// two runs of the same calls would send different numbers of commands.
const ONE_PAGE: [&str; 4] = ["CONFIG", "SET", "hash-max-listpack-value", "65536"];

/// The flag by which a server says that a command changes nothing.
const READ_ONLY: &[u8] = b"readonly";

/// How many more times, at most, the suite tries all steps if the faults have missed
/// some command.
const ROUNDS: u32 = 20;

/// Injects faults into each scenario of a backend, on the server at `server`, which is
/// emptied for each run.
///
/// # Errors
/// When the operating system refuses a resource that the proxy needs, or the server
/// does not reply.
pub async fn every_step(
    server: impl Into<Address>,
    subject: Arc<dyn Subject>,
) -> io::Result<Tally> {
    let (server, mut tally) = (server.into(), Tally::default());
    for scenario in SCENARIOS {
        tally.add(
            one_act(server.clone(), Arc::clone(&subject), scenario, Share::Whole)
                .await?,
        );
    }
    Ok(tally)
}

/// Injects faults at every step of one scenario: those of the share.
pub(crate) async fn one_act(
    server: Address,
    subject: Arc<dyn Subject>,
    scenario: &'static Scenario,
    share: Share,
) -> io::Result<Tally> {
    let actors = actors(server, subject).await?;
    let capabilities = actors.healthy.capabilities();
    let missing = scenario.needs.iter().find(|need| !need.is_met_by(capabilities));
    match missing {
        None => inject(&actors, scenario, share).await,
        Some(need) => Ok(Tally::unsupported(scenario.name, *need)),
    }
}

pub(super) async fn actors(
    server: Address,
    subject: Arc<dyn Subject>,
) -> io::Result<Actors> {
    let clock = VirtualClock::new();
    let proxy = FaultProxy::start(server, clock.clone())?;
    subject.prepare(&proxy).await?;
    proxy.tell(&ONE_PAGE).await?;
    let endpoint = proxy.actor("hand")?;
    let environment = seeded(&clock, 1);
    let opened = subject.connect(endpoint.url(), &queue(), &environment).await;
    let queue = opened.map_err(|error| io::Error::other(error.full_message()))?;
    let healthy = HealthyActor { queue, worker: worker("hand") };
    let mut survivors = Survivors { clock, healthy, elsewhere: None };
    if survivors.healthy.capabilities().supports(Capability::Batches) {
        let name = elsewhere();
        let opened = subject.connect(endpoint.url(), &name, &environment).await;
        let queue = opened.map_err(|error| io::Error::other(error.full_message()))?;
        survivors.elsewhere = Some(HealthyActor { queue, worker: worker("hand") });
    }
    Ok(Actors { proxy, environment, subject, survivors, panics: Panics::here() })
}

async fn inject(
    actors: &Actors,
    scenario: &'static Scenario,
    share: Share,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let first = one_run(actors, scenario, None, None, 0, &mut tally).await?;
    let second = one_run(actors, scenario, None, None, 1, &mut tally).await?;
    if labels(&first) != labels(&second) && scenario.is_steady() {
        let (first, second) = (labels(&first), labels(&second));
        let (name, check) = (scenario.name, Check::Deterministic);
        tally.failures.push(format!("{name}: {check}: {first:?}, then {second:?}"));
    }
    tally.steps += first.len() as u64;
    let run = inject_at_each(actors, scenario, &first, share, &mut tally).await?;
    let is_each_time = |step: &&StepRecord| is_among(&second, step);
    let each_time = first.iter().filter(is_each_time).map(StepRecord::label);
    let each_time: Vec<_> = each_time.collect();
    let run =
        inject_the_rest(actors, scenario, &first, &each_time, run, &mut tally).await?;
    die_at_the_rescue(actors, scenario, &first, run, &mut tally).await?;
    Ok(tally)
}

/// Injects the faults of the share at each of the steps that the first run had. Returns the
/// number of the last run.
async fn inject_at_each(
    actors: &Actors,
    scenario: &'static Scenario,
    steps: &[StepRecord],
    share: Share,
    tally: &mut Tally,
) -> io::Result<u32> {
    let mut run = 1;
    for (at, step) in steps.iter().enumerate() {
        let is_sampled =
            is_usual(steps, at) && only_reads(actors, &step.command).await?;
        for injected in faults_at(step, is_sampled, scenario.name, share) {
            run += 1;
            let at = Some((step.step, &injected));
            let seen = one_run(actors, scenario, at, None, run, tally).await?;
            // On a busy machine a waiting claim polls more often. So the first run may
            // have had more steps than this one, and then no fault can fire at this
            // step.
            if !scenario.is_steady() && seen.len() < step.step as usize {
                break;
            }
        }
    }
    Ok(run)
}

/// Whether the step at this place is the first of several, which for most backends is the same
/// in all scenarios, or repeats an earlier one of the scenario.
fn is_usual(steps: &[StepRecord], at: usize) -> bool {
    let is_first_of_several = at == 0 && steps.len() > 1;
    is_first_of_several || is_among(&steps[..at], &steps[at])
}

/// Whether the server says that a command changes nothing, as it does of `EVAL_RO`.
pub(super) async fn only_reads(actors: &Actors, command: &str) -> io::Result<bool> {
    let about = actors.proxy.tell(&["COMMAND", "INFO", command]).await?;
    Ok(about.windows(READ_ONLY.len()).any(|words| words == READ_ONLY))
}

/// COVERAGE: injects faults until each command was hit with `before` and with `after`. Returns
/// the number of the last run.
/// If the order of the steps differs from run to run, a fault at a step may have missed
/// a command. For a scenario whose steps vary, this includes only the commands that the
/// victim sent in both runs without a fault.
async fn inject_the_rest(
    actors: &Actors,
    scenario: &'static Scenario,
    steps: &[StepRecord],
    each_time: &[String],
    mut run: u32,
    tally: &mut Tally,
) -> io::Result<u32> {
    // A whole worker sends some commands only in some runs. The scenarios of single
    // calls send them in each run, and so cover these commands.
    if scenario.is_worker() && !tally.coverage.is_empty() {
        return Ok(run);
    }
    let is_done = |tally: &Tally| is_covered(tally, scenario, each_time);
    let deaths = faults(false).into_iter().filter(InjectedFault::is_plain_death);
    let deaths: Vec<_> = deaths.collect();
    for _ in 0..ROUNDS {
        // The command at one step is not the same in each run, so every step is tried.
        for step in steps {
            for death in &deaths {
                if is_done(tally) {
                    return Ok(run);
                }
                run += 1;
                let at = Some((step.step, death));
                one_run(actors, scenario, at, None, run, tally).await?;
            }
        }
    }
    if !is_done(tally) {
        let name = scenario.name;
        let missed = format!("{name}: {}: {:?}", Check::Coverage, tally.coverage);
        tally.failures.push(missed);
    }
    Ok(run)
}

/// Whether the faults `before` and `after` were injected at the commands of a scenario:
/// at all of them if they are the same in each run, and otherwise at those that are sent
/// in each run.
fn is_covered(tally: &Tally, scenario: &Scenario, each_time: &[String]) -> bool {
    let is_all_hit = each_time.iter().all(|label| tally.covers(label));
    let is_enough = !scenario.is_steady() || tally.is_covered();
    !tally.coverage.is_empty() && is_all_hit && is_enough
}

fn is_among(steps: &[StepRecord], step: &StepRecord) -> bool {
    steps.iter().any(|other| other.label() == step.label())
}

pub(super) fn queue() -> QueueName {
    QueueName::new(QUEUE).expect("the name is valid")
}

pub(super) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the name is valid")
}
