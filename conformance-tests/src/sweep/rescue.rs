//! A second fault: the actor that recovers the jobs of a dead victim dies, too.
//!
//! ```text
//!  1  the victim dies before its first step or in the middle of its calls, or its last
//!     command arrives late, so that the store may hold a part of its changes
//!  2  every lease and delay ends
//!  3  another actor, the rescuer, recovers the jobs, and dies at one of its steps; or it
//!     dies and the step arrives later: when the survivors have recovered the jobs, or
//!     while they hold them
//!  4  the survivors take over, and the promise of the scenario must hold, as after one
//!     fault
//! ```
//!
//! Steps that only read change nothing, so they are not hit.

use std::io;

use relq_core::environment::Clock as _;
use tokio::sync::watch;

use super::{
    Check, Tally,
    actors::{Actors, PAST_ALL},
    drive::{only_reads, queue, worker},
    faults::{InjectedFault, faults, ghost_while_held, is_in_turn},
    one_run::{AtStep, fired, one_run, steps_of},
    promise::Atomicity,
    scenarios::{Again, Calls, Scenario},
    victim::{Part, Ran, VictimAnswer, act},
};
use crate::{harness::is_thorough, proxy::StepRecord};

/// The calls of the rescuer.
const RECOVERY: &Scenario = &Scenario {
    name: "rescue",
    needs: &[],
    setup: "",
    calls: Calls::Lines("r recover 100"),
    again: Again::Never,
    atomicity: Atomicity::EachByItself,
    is_new: false,
};

/// Unless a run is thorough, one in this many deaths of the victim is followed by a recovery
/// with faults, and one in this many deaths of the rescuer is tried. The commands of a recovery
/// are much the same in all scenarios, so all scenarios together have faults at each.
const SAMPLE_OF_VICTIM: usize = 3;
const SAMPLE_OF_RESCUER: usize = 11;

/// The rescuer of a run, and the fault that hits it.
#[derive(Clone, Copy)]
pub(super) struct Rescue<'a> {
    pub(super) inject: Option<AtStep<'a>>,
}

impl<'a> Rescue<'a> {
    pub(super) fn fault(self) -> Option<&'a InjectedFault> {
        self.inject.map(|(_, injected)| injected)
    }
}

/// The name under which the rescuer of a run connects.
fn name(run: u32) -> String {
    format!("rescuer-{run}")
}

/// Advances the clock past every lease and delay, and makes the rescuer's calls with its fault.
/// Fails if the recovery hangs, if it fails without a fault, or if the fault does not fire.
pub(super) async fn rescue(
    actors: &Actors,
    rescue: &Rescue<'_>,
    run: u32,
    tally: &mut Tally,
) -> io::Result<Result<(), String>> {
    let name = name(run);
    let endpoint = actors.proxy.actor(&name)?;
    if let Some((step, injected)) = rescue.inject {
        actors.proxy.plan(&name, step, injected.fault.clone());
    }
    actors.survivors.clock.advance(PAST_ALL);
    let part = Part {
        worker: worker(&name),
        receipts: Vec::new(),
        jobs: Vec::new(),
        scene_began: actors.survivors.clock.now(),
        ran: Ran::default(),
    };
    let passes = watch::channel(true).1;
    let answer = act(actors, &queue(), &endpoint, (part, passes), RECOVERY).await;
    actors.proxy.kill(&endpoint).await;
    if rescue.inject.is_some() {
        if let Err(how) = fired(&steps_of(actors, &name)) {
            return Ok(Err(format!("the recovery: {how}; {answer:?}")));
        }
        tally.faults_fired += 1;
    }
    Ok(match answer {
        VictimAnswer::Silence(calls) => {
            Err(format!("{}: the recovery hangs; {calls}", Check::Hang))
        }
        VictimAnswer::Answer(Err(error)) if rescue.inject.is_none() => {
            let (check, error) = (Check::DrainAfterHeal, error.full_message());
            Err(format!("{check}: the recovery: {error}"))
        }
        // A dead rescuer has no answer, or the error of its connection.
        VictimAnswer::Answer(_) | VictimAnswer::Nothing => Ok(()),
    })
}

/// Lets the victim die in the middle of its calls, and the rescuer at each of its steps.
pub(super) async fn die_at_the_rescue(
    actors: &Actors,
    scenario: &'static Scenario,
    steps: &[StepRecord],
    mut run: u32,
    tally: &mut Tally,
) -> io::Result<()> {
    if !scenario.is_steady() {
        return Ok(());
    }
    let sampled =
        |number, one_in| is_thorough() || is_in_turn(scenario.name, number, one_in);
    let deaths = [fault("before"), fault("after"), fault("ghost")];
    let writes_of_victim = writes(actors, steps).await?;
    for (number, hit) in deaths_of(&writes_of_victim, &deaths).into_iter().enumerate() {
        if !sampled(number, SAMPLE_OF_VICTIM) {
            continue;
        }
        run += 1;
        let whole = Some(Rescue { inject: None });
        one_run(actors, scenario, Some(hit), whole, run, tally).await?;
        let recovery = writes(actors, &steps_of(actors, &name(run))).await?;
        let mut deaths = vec![fault("after"), fault("ghost after recovery")];
        // A late call of the victim may itself remove jobs that a survivor holds.
        if hit.1.name != "ghost" {
            deaths.push(ghost_while_held());
        }
        let seconds = deaths_of(&recovery, &deaths).into_iter().enumerate();
        let sampled =
            |(at, _): &(usize, AtStep<'_>)| sampled(number + at, SAMPLE_OF_RESCUER);
        for (_, second) in seconds.filter(sampled) {
            run += 1;
            let rescuer = Some(Rescue { inject: Some(second) });
            one_run(actors, scenario, Some(hit), rescuer, run, tally).await?;
        }
    }
    Ok(())
}

/// Each of these steps with each of these deaths. A death right before a step leaves the store
/// as that right after the step before, and a death right after the last one leaves it as
/// without a fault.
fn deaths_of<'a>(steps: &[u32], deaths: &'a [InjectedFault]) -> Vec<AtStep<'a>> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Vec::new();
    };
    let all = steps.iter().flat_map(|step| deaths.iter().map(|death| (*step, death)));
    let differs = |(step, death): &AtStep<'_>| match death.name {
        "before" => step == first,
        "after" => step != last,
        _ => true,
    };
    all.filter(differs).collect()
}

/// The numbers of the steps that may change something.
async fn writes(actors: &Actors, steps: &[StepRecord]) -> io::Result<Vec<u32>> {
    let mut writes = Vec::new();
    for step in steps {
        if !only_reads(actors, &step.command).await? {
            writes.push(step.step);
        }
    }
    Ok(writes)
}

/// The fault of that name.
fn fault(name: &str) -> InjectedFault {
    let named = faults(false).into_iter().find(|fault| fault.name == name);
    named.expect("there is a fault of each name that is used here")
}
