//! Determines whether an act that a fault hit was done.

use relq_core::{
    Error,
    error::{Effect, RetryAdvice},
};

use super::{
    Check,
    actors::Actors,
    faults::{FULL, InjectedFault},
    promise::Knowledge,
    scenarios::{Again, Scenario},
    victim::{Part, Victim, VictimAnswer, pump},
};
use crate::proxy::{Fault, StepRecord};

/// Derives from the victim's result whether the act was done.
pub(super) fn known(
    answer_of_victim: &VictimAnswer,
    injected: Option<&InjectedFault>,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    match (answer_of_victim, injected) {
        (VictimAnswer::Silence, _) => Err(format!("{}: the act hangs", Check::Hang)),
        (VictimAnswer::Answer(Ok(())), None) => Ok(Knowledge::Done),
        (VictimAnswer::Answer(Err(error)), None) => Err(error.full_message()),
        (VictimAnswer::Nothing, None) => {
            Err("the act ended without an answer".to_owned())
        }
        // A dead victim returns no result.
        (_, Some(injected)) if injected.kills => Ok(Knowledge::Unknown),
        (VictimAnswer::Answer(Ok(())), _) => Ok(Knowledge::Done),
        (VictimAnswer::Answer(Err(error)), Some(injected)) => {
            of_error(error, injected, steps)
        }
        (VictimAnswer::Nothing, _) => {
            Err("the actor died of a fault that it lives through".into())
        }
    }
}

/// The error must say correctly whether the call took effect (R21).
fn of_error(
    error: &Error,
    injected: &InjectedFault,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    if matches!(injected.fault, Fault::Meanwhile(_)) {
        // A script that the server forgot must be sent again; a full server must be
        // reported.
        let is_full = injected.name == FULL && matches!(error, Error::Full { .. });
        if !is_full {
            let check = if injected.name == FULL {
                Check::ErrorClass
            } else {
                Check::ScriptReload
            };
            return Err(format!("{check}: the call failed: {}", error.full_message()));
        }
    }
    // If an act has several commands, one may be done although another is refused.
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

/// A survivor repeats the act if it may be repeated, and then it must be done.
async fn again(
    actors: &Actors,
    scenario: &Scenario,
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
        repeated = (scenario.act)(victim) => repeated,
        () = pump(actors) => return Err(format!("{}: the repetition hangs", Check::Hang)),
    };
    let said = |error: Error| {
        format!("{}: the repetition: {}", Check::Repeat, error.full_message())
    };
    repeated.map(|()| Knowledge::Done).map_err(said)
}

/// Determines the final knowledge, after a repetition if the act may be repeated.
pub(super) async fn settled(
    actors: &Actors,
    scenario: &Scenario,
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
