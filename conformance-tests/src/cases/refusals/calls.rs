//! The server refuses the commands of a call, for each call of the queue traits.

use std::fmt::Write as _;

use relq_core::{
    Error,
    error::{Effect, ErrorContext, Operation},
    operator::JobState,
};

use super::{ByAPerson, Heals, REFUSALS};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        calls::{Known, calls, operation_of},
        store::Store,
    },
};

/// The number of commands that the server refuses when it is to refuse all commands of
/// a call. No call sends as many.
const ALWAYS: u32 = 100;

/// Describes the stats, all jobs with their results, and all schedules of the queue
/// as text, so that a case can compare the queue before and after a call.
async fn described(actor: &Actor) -> String {
    let mut all = format!("{:#?}", actor.figures().await);
    let mut ids = Vec::new();
    let states =
        [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead];
    for state in states {
        for job in actor.list(state, 100).await {
            write!(all, "\n{state:?}: {job:?}").expect("a string takes all");
            ids.extend(job.id);
        }
    }
    if let Some(results) = actor.result_queue() {
        let told = results.read_results(&ids).await.expect("answered");
        write!(all, "\n{told:?}").expect("a string takes all");
    }
    if let Some(scheduler) = actor.schedule_queue() {
        let found = scheduler.schedules().await.expect("answered").schedules;
        write!(all, "\n{found:?}").expect("a string takes all");
    }
    all
}

/// Asserts that the error says that the call had no effect, that it says correctly
/// whether a person must remove the cause, and that it names the backend and the
/// `operation` of the call: the operation decides whether a call may be repeated.
fn assert_refused(
    error: &Error,
    heals: Heals,
    (backend, operation): (&'static str, Operation),
    what: &str,
) {
    let told = error.full_message();
    assert_eq!(
        error.effect(),
        Effect::No,
        "{what}: nothing happened, and it says {told}"
    );
    let needs_help = heals == ByAPerson;
    assert_eq!(error.needs_help(), needs_help, "{what}: it heals {heals:?}: {told}");
    // A call that has to connect first, or to check where it is connected, ends with that.
    let operation = match error.at().operation {
        Operation::Connect => Operation::Connect,
        _ => operation,
    };
    let at = ErrorContext { backend, operation };
    assert_eq!(error.at(), at, "{what}: its error names another call: {told}");
}

case!(a_call_that_is_always_refused_changes_nothing: R21 @ redis);
/// A call whose commands are all refused returns an error that says that nothing was
/// changed, and the store is unchanged. Once the server refuses nothing any more, the
/// call succeeds on the same connection.
async fn a_call_that_is_always_refused_changes_nothing(store: &Store) {
    store.stop_clock();
    let witness = store.actor("witness").await;
    for (refusal, heals) in REFUSALS {
        let known = Known::prepare(&witness.acting_as("victim")).await;
        let victim = store.actor("victim").await;
        let before = described(&witness).await;
        for (name, call) in calls(&victim, &known) {
            let what = format!("{name}, refused by {refusal}");
            let steps = store.refuse("victim", ALWAYS, refusal);

            let (answer, _) = store.within(store.response_limit(), call).await;

            store.heal().await;
            match answer {
                Err(error) => {
                    let at = (victim.capabilities().backend, operation_of(name));
                    assert_refused(&error, heals, at, &what);
                }
                Ok(()) => {
                    assert_eq!(store.steps_of("victim"), steps, "{what}: it is Ok");
                }
            }
            assert_eq!(described(&witness).await, before, "{what}");
        }
        for (name, call) in calls(&victim, &known) {
            let (answer, _) = store.within(store.response_limit(), call).await;
            assert!(answer.is_ok(), "{name} after {refusal}: {answer:?}");
        }
        witness.purge().await.expect("purged");
    }
}

case!(a_call_that_is_refused_once_changes_nothing_or_all: R21 @ redis);
/// A call whose first command is refused either returns an error that says that nothing
/// was changed, or repeats the command and succeeds. The same call then succeeds.
async fn a_call_that_is_refused_once_changes_nothing_or_all(store: &Store) {
    store.stop_clock();
    let witness = store.actor("witness").await;
    for (refusal, heals) in REFUSALS {
        let victim = store.actor("victim").await;
        for at in 0.. {
            let known = Known::prepare(&witness.acting_as("victim")).await;
            let before = described(&witness).await;
            let Some((name, call)) = calls(&victim, &known).into_iter().nth(at) else {
                break;
            };
            let what = format!("{name}, refused once by {refusal}");
            let steps = store.refuse("victim", 1, refusal);

            let (answer, _) = store.within(store.response_limit(), call).await;

            store.heal().await;
            if let Err(error) = &answer {
                // The call may have sent another command, which took effect.
                let is_in_part = store.steps_of("victim") > steps + 1;
                if !is_in_part || error.effect() == Effect::No {
                    let at = (victim.capabilities().backend, operation_of(name));
                    assert_refused(error, heals, at, &what);
                    assert_eq!(described(&witness).await, before, "{what}");
                }
                let (_, call) = calls(&victim, &known).swap_remove(at);
                let (answer, _) = store.within(store.response_limit(), call).await;
                assert!(answer.is_ok(), "{name} after {refusal}: {answer:?}");
            }
            witness.purge().await.expect("purged");
            witness.resume().await.expect("resumed");
        }
        witness.purge().await.expect("purged");
    }
}
