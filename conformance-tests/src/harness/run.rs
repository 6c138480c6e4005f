//! Runs one case on a store of its own.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    time::Duration,
};

use crate::{
    Case, Profile, Subject, cases,
    harness::{
        call_log::CallLog, neighbour::Neighbour, probe, runtime::block_on, store::Store,
    },
};

/// The time limit of a case. A case that takes longer counts as hanging (R21). The
/// slowest case takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the case `id`, such as `leases::an_extended_lease_holds`. [`Tests`](crate::Tests)
/// calls it.
///
/// # Panics
/// When the backend breaks a promise, when the case hangs, or when no case has that
/// id.
pub fn run<S: Subject + Default>(profile: Profile, id: &str) {
    run_subject(S::default(), profile, id);
}

/// Does the same as [`run`], on the given subject.
pub(crate) fn run_subject(subject: impl Subject, profile: Profile, id: &str) {
    let calls = CallLog::default();
    let ran = caught(|| drop(run_on(LIMIT, subject, profile, id, &calls)));
    if let Err(wrong) = ran {
        // The panic was printed when it happened. The failure of the test also has the
        // rules of the case, the calls before the panic, and a command that repeats it.
        resume_unwind(Box::new(format!("{wrong}\n{}", told(id, &calls))));
    }
}

/// The rules of a case, the last calls of its actors, and the command that runs it.
fn told(id: &str, calls: &CallLog) -> String {
    let rules = cases().iter().find(|case| case.id == id).map(|case| case.rules);
    format!(
        "the case tests {}; {}\nrepeat: cargo test --test conformance {id}",
        rules.unwrap_or_default().join(", "),
        calls.ended(),
    )
}

/// Runs the case `id` on this subject, which must fail, such as a mutant. Returns the
/// failure message, with which a test would panic, in place of a panic.
///
/// # Errors
/// The message of the broken promise.
pub fn judge_case(
    subject: impl Subject,
    profile: Profile,
    id: &str,
) -> Result<(), String> {
    judge_case_within(LIMIT, subject, profile, id)
}

/// Does the same as [`judge_case`], with another time limit, after which the case
/// counts as hanging.
///
/// # Errors
/// The message of the broken promise.
pub fn judge_case_within(
    limit: Duration,
    subject: impl Subject,
    profile: Profile,
    id: &str,
) -> Result<(), String> {
    caught(|| drop(run_on(limit, subject, profile, id, &CallLog::default())))
}

/// Runs `test`. If it panics, the error is the message of the panic.
pub(crate) fn caught(test: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(test)).map_err(|panic| {
        match panic.downcast::<String>() {
            Ok(words) => *words,
            Err(panic) => {
                panic.downcast_ref::<&str>().copied().unwrap_or("?").to_owned()
            }
        }
    })
}

/// Runs the case `id`, and returns the names of the commands and scripts that the
/// backend sent. The case cannot detect a fault in any other command or script.
///
/// # Panics
/// When [`run`] panics.
pub fn commands(subject: impl Subject, id: &str) -> BTreeSet<String> {
    run_on(LIMIT, subject, Profile::Redis, id, &CallLog::default())
}

fn run_on(
    limit: Duration,
    subject: impl Subject,
    profile: Profile,
    id: &str,
    calls: &CallLog,
) -> BTreeSet<String> {
    let case = cases().iter().find(|case| case.id == id);
    let case = case.unwrap_or_else(|| panic!("there is no case {id}"));
    block_on(async {
        let store = Store::start(subject, profile).noting_calls_in(calls);
        let judged = Box::pin(judge(&store, case));
        let ended = tokio::time::timeout(limit, judged).await;
        ended.unwrap_or_else(|_| {
            let calls = calls.in_progress();
            panic!("HANG, R21: {} did not end within {limit:?}; {calls}", case.id)
        })
    })
}

async fn judge(store: &Store, case: &Case) -> BTreeSet<String> {
    store.prepare().await;
    let capabilities = store.actor("judge").await.capabilities().clone();
    let missing: Vec<_> =
        case.needs.iter().filter(|need| !need.is_met_by(&capabilities)).collect();
    // On Redis every key begins with the name of its queue, which the audit below checks.
    let shares_tables = store.is_embedded();
    let neighbour =
        if shares_tables { Some(Neighbour::in_store(store).await) } else { None };
    if missing.is_empty() {
        (case.run)(store).await;
    }
    for need in missing {
        probe::instead(store, *need).await;
    }
    if let Some(neighbour) = neighbour {
        neighbour.assert_untouched().await;
    }
    store.audit_all_queues().await;
    store.commands()
}
