//! Runs every scenario again and again, until each fault has hit each of its steps.

use std::{io, sync::Arc};

use relq_core::{QueueName, WorkerId, capabilities::Capability};
use tokio::sync::watch;

use super::{
    Check, Tally,
    actors::{Actors, HealthyActor, Survivors, VictimObserver},
    faults::{FULL, InjectedFault, Share, faults, faults_at},
    judge::{Late, take_over},
    known::{known, settled},
    prepare::Scene,
    promise::{End, Knowledge},
    rescue::{Rescue, die_at_the_rescue, rescue},
    scenarios::{SCENARIOS, Scenario},
    victim::{Part, VictimAnswer, act},
};
use crate::{
    Subject,
    harness::{environment::seeded, runtime::Panics},
    proxy::{Address, Endpoint, Fate, FaultProxy, StepRecord, VirtualClock},
    spec::draft::elsewhere,
};

const QUEUE: &str = "jobs";
const VICTIM: &str = "victim";

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
    let mut run = 0;
    let first = one_run(actors, scenario, None, None, run, &mut tally).await?;
    run += 1;
    let second = one_run(actors, scenario, None, None, run, &mut tally).await?;
    if labels(&first) != labels(&second) && scenario.is_steady() {
        let (first, second) = (labels(&first), labels(&second));
        let name = scenario.name;
        tally.failures.push(format!(
            "{name}: {}: {first:?}, then {second:?}",
            Check::Deterministic
        ));
    }
    tally.steps += first.len() as u64;
    for (at, step) in first.iter().enumerate() {
        let is_sampled =
            is_usual(&first, at) && only_reads(actors, &step.command).await?;
        for injected in faults_at(step, is_sampled, scenario.name, share) {
            run += 1;
            let at = Some((step.step, &injected));
            let seen = one_run(actors, scenario, at, None, run, &mut tally).await?;
            // On a busy machine a waiting claim polls more often. So the first run may
            // have had more steps than this one, and then no fault can fire at this
            // step.
            if !scenario.is_steady() && seen.len() < step.step as usize {
                break;
            }
        }
    }
    let is_each_time = |step: &&StepRecord| is_among(&second, step);
    let each_time = first.iter().filter(is_each_time).map(StepRecord::label);
    let each_time: Vec<_> = each_time.collect();
    run =
        inject_the_rest(actors, scenario, &first, &each_time, run, &mut tally).await?;
    die_at_the_rescue(actors, scenario, &first, run, &mut tally).await?;
    Ok(tally)
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

pub(super) fn labels(steps: &[StepRecord]) -> Vec<String> {
    steps.iter().map(StepRecord::label).collect()
}

/// A fault and the number of the step that it hits.
pub(super) type AtStep<'a> = (u32, &'a InjectedFault);

/// What a run has come to when the victim's calls have ended.
struct Acted {
    scene: Scene,
    answer: VictimAnswer,
    steps: Vec<StepRecord>,
}

/// Prepares the store, and makes the victim's calls with the fault. Fails if the backend breaks
/// a rule in the setup.
async fn acted(
    actors: &Actors,
    scenario: &'static Scenario,
    inject: Option<AtStep<'_>>,
    run: u32,
) -> io::Result<Result<Acted, String>> {
    actors.proxy.tell(&["FLUSHALL"]).await?;
    if !scenario.is_new {
        actors.survivors.write_again().await;
    }
    let name = format!("{VICTIM}-{run}");
    let (victim, endpoint) = (worker(&name), actors.proxy.actor(&name)?);
    let scene = match scenario.prepare(actors, &victim).await {
        Ok(scene) => scene,
        Err(wrong) => return Ok(Err(wrong)),
    };
    if let Some((step, injected)) = inject {
        actors.proxy.plan(&name, step, injected.fault.clone());
    }
    let plan = (scene.part.clone(), inject.map(|(_, injected)| injected));
    let answer = have_acted(actors, scenario, &endpoint, plan).await?;
    let steps = steps_of(actors, &name);
    Ok(Ok(Acted { scene, answer, steps }))
}

/// Makes one run: lets the victim act with the fault, and then the rescuer, if there is one,
/// and the survivors take over, and judges the result. Returns the steps that the victim took.
pub(super) async fn one_run(
    actors: &Actors,
    scenario: &'static Scenario,
    inject: Option<AtStep<'_>>,
    rescuer: Option<Rescue<'_>>,
    run: u32,
    tally: &mut Tally,
) -> io::Result<Vec<StepRecord>> {
    let replay = replay(scenario, inject, rescuer);
    let acted = acted(actors, scenario, inject, run).await?;
    let failed = |wrong| tally.failures.push(format!("{replay}: {wrong}"));
    let Ok(Acted { scene, answer, steps }) = acted.map_err(failed) else {
        return Ok(Vec::new());
    };
    let injected = inject.map(|(_, injected)| injected);
    let mut wrong = Vec::new();
    if let Some(rescuer) = rescuer {
        wrong.extend(rescue(actors, &rescuer, run, tally).await?.err());
    }
    let order = actors.healthy.capabilities().order;
    let known = known(order, &answer, injected, &steps);
    let part = scene.part.clone();
    let known = settled(actors, scenario, (part, injected, &answer), known).await;
    let last = rescuer.and_then(Rescue::fault).or(injected);
    let said = |how| format!("{how}; the victim: {answer:?}");
    wrong.extend(judged(actors, &scene, last, known).await.map_err(said).err());
    wrong.extend(panics_of(actors));
    if let Err(how) = count(tally, inject, &steps)
        && scenario.is_steady()
    {
        wrong.push(how);
    }
    tally.failures.extend(wrong.into_iter().map(|how| format!("{replay}: {how}")));
    Ok(steps)
}

fn panics_of(actors: &Actors) -> impl Iterator<Item = String> + use<> {
    let panics = actors.panics.take().into_iter();
    panics.map(|panic| format!("{}: {panic}", Check::Panic))
}

/// Makes the victim's calls while the other actors make theirs. Closes the victim's
/// connections as soon as the victim's calls have ended.
async fn have_acted(
    actors: &Actors,
    scenario: &'static Scenario,
    endpoint: &Endpoint,
    (part, injected): (Part, Option<&InjectedFault>),
) -> io::Result<VictimAnswer> {
    let queue = queue();
    let is_full = injected.is_some_and(|injected| injected.name == FULL);
    let (time, passes) = watch::channel(!scenario.has_others());
    let acting = async {
        let acting = act(actors, &queue, endpoint, (part, passes), scenario);
        let answer_of_victim = acting.await;
        actors.proxy.kill(endpoint).await;
        answer_of_victim
    };
    let room = async move {
        if is_full {
            // The proxy must end the fault before the memory limit is removed, because
            // otherwise it fills the server again.
            actors.proxy.heal().await.expect("nothing is frozen");
            make_room(actors).await.expect("the server takes it");
        }
    };
    let observer = VictimObserver::of(actors, endpoint, Box::pin(room), time);
    let (answer_of_victim, ()) =
        tokio::join!(acting, scenario.meanwhile(actors, observer));
    if is_full {
        make_room(actors).await?;
    }
    Ok(answer_of_victim)
}

async fn make_room(actors: &Actors) -> io::Result<()> {
    actors.proxy.tell(&["CONFIG", "SET", "maxmemory", "0"]).await.map(drop)
}

/// Lets the survivors take over, and compares what they find with the promise of the
/// scenario.
async fn judged(
    actors: &Actors,
    scene: &Scene,
    injected: Option<&InjectedFault>,
    known: Result<Knowledge, String>,
) -> Result<(), String> {
    let late = injected.map_or(Late::AtOnce, |injected| injected.late);
    let found = take_over(actors, &scene.part.newest_receipts(), late).await;
    let (known, mut found) = (known?, found?);
    for payload in scene.part.ran.payloads() {
        found.promise.add(payload, End::Ran);
    }
    found.count_schedules(scene.part.scene_began);
    found.count_told(&scene.promise);
    scene.promise.bearing(injected.is_some()).judge(&found, known)
}

pub(super) fn steps_of(actors: &Actors, name: &str) -> Vec<StepRecord> {
    actors.proxy.steps_by(name)
}

/// Adds the victim's fault to the tally. Fails if it was planned and did not fire.
fn count(
    tally: &mut Tally,
    inject: Option<AtStep<'_>>,
    steps: &[StepRecord],
) -> Result<(), String> {
    let Some((_, injected)) = inject else { return Ok(()) };
    let step = fired(steps)?;
    tally.runs += 1;
    tally.faults_fired += 1;
    tally.coverage.entry(step.label()).or_default().insert(injected.name);
    Ok(())
}

/// The step that the planned fault of an actor has hit. Fails if it did not fire.
pub(super) fn fired(steps: &[StepRecord]) -> Result<&StepRecord, String> {
    let fired = steps.iter().find(|step| matches!(step.fate, Fate::Injected(_)));
    fired.ok_or_else(|| {
        let (check, sent) = (Check::FaultFired, labels(steps));
        format!("{check}: the fault did not fire at one of {sent:?}")
    })
}

fn replay(
    scenario: &'static Scenario,
    inject: Option<AtStep<'_>>,
    rescuer: Option<Rescue<'_>>,
) -> String {
    let at = |inject: Option<AtStep<'_>>| {
        inject.map(|(step, injected)| format!(", step {step}, {}", injected.name))
    };
    let mut replay = format!("{}{}", scenario.name, at(inject).unwrap_or_default());
    if let Some(Rescue { inject }) = rescuer {
        replay += "; then a recovery";
        replay += &at(inject).unwrap_or_default();
    }
    replay
}

pub(super) fn queue() -> QueueName {
    QueueName::new(QUEUE).expect("the name is valid")
}

pub(super) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the name is valid")
}
