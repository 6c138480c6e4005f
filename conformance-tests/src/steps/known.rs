//! What is known of an act that was struck: whether it was done.

use queue_core::{Error, Happened, RetryAdvice};

use super::{
    Check,
    crew::Crew,
    faults::{FULL, Struck},
    outcome::Knowledge,
    scenarios::{Again, Scenario},
    victim::{Heard, Part, Victim, pump},
};
use crate::fault::{Fault, StepRecord};

/// What is known of the act from what was heard of it.
pub(super) fn known(
    heard: &Heard,
    struck: Option<&Struck>,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    match (heard, struck) {
        (Heard::Silence, _) => Err(format!("{}: the act hangs", Check::Hang)),
        (Heard::Answer(Ok(())), None) => Ok(Knowledge::Done),
        (Heard::Answer(Err(error)), None) => Err(error.full_message()),
        (Heard::Nothing, None) => Err("the act ended without an answer".to_owned()),
        // What the dead would have said is heard by nobody.
        (_, Some(struck)) if struck.kills => Ok(Knowledge::Unknown),
        (Heard::Answer(Ok(())), _) => Ok(Knowledge::Done),
        (Heard::Answer(Err(error)), Some(struck)) => of_error(error, struck, steps),
        (Heard::Nothing, _) => {
            Err("the actor died of a fault that it lives through".into())
        }
    }
}

/// An error says truly whether the call happened (R21).
fn of_error(
    error: &Error,
    struck: &Struck,
    steps: &[StepRecord],
) -> Result<Knowledge, String> {
    if matches!(struck.fault, Fault::Meanwhile(_)) {
        // A script that the server forgot is sent again; a full server is named.
        let is_full = struck.name == FULL && matches!(error, Error::Full { .. });
        if !is_full {
            let check = if struck.name == FULL {
                Check::ErrorClass
            } else {
                Check::ScriptReload
            };
            return Err(format!("{check}: not borne: {}", error.full_message()));
        }
    }
    // Of several commands one may be done though another is refused.
    let is_alone = steps.len() == 1;
    let was_refused = is_alone && matches!(struck.fault, Fault::Error(_));
    match error.happened() {
        Happened::No => Ok(Knowledge::Undone),
        Happened::Maybe if was_refused => Err(format!(
            "{}: the server's refusal is not known: {}",
            Check::ErrorClass,
            error.full_message()
        )),
        Happened::Maybe | Happened::Yes => Ok(Knowledge::Unknown),
    }
}

/// What may be repeated is repeated by a survivor, and then it is done.
async fn again(
    crew: &Crew,
    scenario: &Scenario,
    victim: Victim,
    heard: &Heard,
) -> Result<Knowledge, String> {
    let unchanged = match heard {
        Heard::Answer(Err(error)) if error.happened() == Happened::No => {
            Knowledge::Undone
        }
        _ => Knowledge::Unknown,
    };
    let is_safe = match heard {
        Heard::Answer(Err(error)) => error.retry_advice() == RetryAdvice::Safe,
        _ => false,
    };
    match scenario.again {
        Again::Never => return Ok(unchanged),
        Again::AsTheVictim if !is_safe => return Ok(unchanged),
        Again::AsTheVictim | Again::ByAnyone => {}
    }
    let repeated = tokio::select! {
        repeated = (scenario.act)(victim) => repeated,
        () = pump(crew) => return Err(format!("{}: the repetition hangs", Check::Hang)),
    };
    let said = |error: Error| {
        format!("{}: the repetition: {}", Check::Repeat, error.full_message())
    };
    repeated.map(|()| Knowledge::Done).map_err(said)
}

/// What is known in the end: what may be repeated is repeated.
pub(super) async fn settled(
    crew: &Crew,
    scenario: &Scenario,
    (part, struck, heard): (Part, Option<&Struck>, &Heard),
    known: Result<Knowledge, String>,
) -> Result<Knowledge, String> {
    let is_heard = struck.is_none_or(|struck| !struck.kills);
    let known = known?;
    if known == Knowledge::Done {
        return Ok(known);
    }
    if is_heard || scenario.again == Again::ByAnyone {
        let (queue, clock) = (crew.hand.queue.clone(), crew.clock.clone());
        return again(crew, scenario, Victim { queue, clock, part }, heard).await;
    }
    Ok(known)
}
