//! One run of a scenario: the victim's calls with at most one fault, and the judgement of what
//! they leave.

use std::io;

use tokio::sync::watch;

use super::{
    Check, Tally,
    actors::{Actors, VictimObserver},
    drive::{queue, worker},
    faults::{FULL, InjectedFault},
    judge::{Late, take_over},
    known::{known, settled},
    prepare::Scene,
    promise::{End, Knowledge},
    rescue::{Rescue, rescue},
    scenarios::Scenario,
    victim::{Part, VictimAnswer, act},
};
use crate::proxy::{Endpoint, Fate, StepRecord};

const VICTIM: &str = "victim";

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

pub(super) fn labels(steps: &[StepRecord]) -> Vec<String> {
    steps.iter().map(StepRecord::label).collect()
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
