//! Finds out whether the calls of a victim that a fault hit took effect.

use relq_core::{
    Error,
    capabilities::Order,
    error::{Effect, RetryAdvice},
};
use tokio::sync::watch;

use super::{
    Check,
    actors::Actors,
    faults::{FULL, InjectedFault},
    promise::Knowledge,
    scenarios::{Again, Scenario},
    victim::{Part, Victim, VictimAnswer, pump},
};
use crate::proxy::{Fault, StepRecord};

/// Derives from the victim's result whether its calls took effect. Fails if the result
/// breaks a promise.
pub(super) fn known(
    order: Order,
    answer_of_victim: &VictimAnswer,
    injected: Option<&InjectedFault>,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    match (answer_of_victim, injected) {
        (VictimAnswer::Silence(calls), _) => {
            Err(format!("{}: the act hangs; {calls}", Check::Hang))
        }
        (VictimAnswer::Answer(Ok(())), None) => Ok(Knowledge::Done),
        (VictimAnswer::Answer(Err(error)), None) => Err(error.full_message()),
        (VictimAnswer::Nothing, None) => {
            Err("the act ended without an answer".to_owned())
        }
        // A dead victim returns no result, so the suite cannot know whether its calls
        // took effect.
        (_, Some(injected)) if injected.kills => Ok(Knowledge::Unknown),
        (VictimAnswer::Answer(Ok(())), _) => Ok(Knowledge::Done),
        (VictimAnswer::Answer(Err(error)), Some(injected)) => {
            of_error(order, error, injected, steps)
        }
        (VictimAnswer::Nothing, _) => {
            Err("the actor died of a fault that it lives through".into())
        }
    }
}

/// Derives from the victim's error whether its call took effect, and checks that the
/// error reports this correctly (R21).
fn of_error(
    order: Order,
    error: &Error,
    injected: &InjectedFault,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    if matches!(injected.fault, Fault::Meanwhile(_)) {
        // The client must hide the error of a server that has lost its scripts, and
        // send the scripts again. It must return the error of a server whose memory is
        // full.
        let is_full = injected.name == FULL && tells_of_full(order, error);
        if !is_full {
            let check = if injected.name == FULL {
                Check::ErrorClass
            } else {
                Check::ScriptReload
            };
            return Err(format!("{check}: the call failed: {}", error.full_message()));
        }
    }
    // If the server refuses a command, the call certainly had no effect only if the
    // refused command was its only one.
    let is_alone = steps.len() == 1;
    let was_refused = is_alone && matches!(injected.fault, Fault::Error(_));
    match error.effect() {
        Effect::No => Ok(Knowledge::Undone),
        Effect::Maybe if was_refused => Err(format!(
            "{}: the server's refusal is not known: {}",
            Check::ErrorClass,
            error.full_message()
        )),
        Effect::Maybe | Effect::Yes => Ok(Knowledge::Unknown),
    }
}

/// Whether the error says that the server's memory is full. A call on a queue of several
/// parts may have changed another part before. Then the call may have happened, and its
/// error has that of the full part as its source.
fn tells_of_full(order: Order, error: &Error) -> bool {
    match error {
        Error::Full { .. } => true,
        Error::Interrupted { source, .. } if order == Order::ByPart => {
            matches!(source.downcast_ref(), Some(Error::Full { .. }))
        }
        _ => false,
    }
}

/// Lets a survivor repeat the victim's calls if that is allowed. Afterwards the calls
/// must have taken effect.
async fn again(
    actors: &Actors,
    scenario: &'static Scenario,
    victim: Victim,
    answer_of_victim: &VictimAnswer,
) -> Result<Knowledge, String> {
    let unchanged = match answer_of_victim {
        VictimAnswer::Answer(Err(error)) if error.effect() == Effect::No => {
            Knowledge::Undone
        }
        _ => Knowledge::Unknown,
    };
    let is_safe = match answer_of_victim {
        VictimAnswer::Answer(Err(error)) => error.retry_advice() == RetryAdvice::Safe,
        _ => false,
    };
    match scenario.again {
        Again::Never => return Ok(unchanged),
        Again::AsTheVictim if !is_safe => return Ok(unchanged),
        Again::AsTheVictim | Again::ByAnyone => {}
    }
    let repeated = tokio::select! {
        repeated = scenario.act(victim) => repeated,
        () = pump(actors, watch::channel(true).1) => return Err(format!("{}: the repetition hangs", Check::Hang)),
    };
    let said = |error: Error| {
        format!("{}: the repetition: {}", Check::Repeat, error.full_message())
    };
    repeated.map(|()| Knowledge::Done).map_err(said)
}

/// Whether the victim's calls took effect. If they may be repeated, a survivor repeats
/// them first.
pub(super) async fn settled(
    actors: &Actors,
    scenario: &'static Scenario,
    (part, injected, answer_of_victim): (Part, Option<&InjectedFault>, &VictimAnswer),
    known: Result<Knowledge, String>,
) -> Result<Knowledge, String> {
    let is_heard = injected.is_none_or(|injected| !injected.kills);
    let known = known?;
    if known == Knowledge::Done {
        return Ok(known);
    }
    if is_heard || scenario.again == Again::ByAnyone {
        let (queue, clock) = (actors.healthy.queue.clone(), actors.clock.clone());
        return again(
            actors,
            scenario,
            Victim { queue, clock, part },
            answer_of_victim,
        )
        .await;
    }
    Ok(known)
}
