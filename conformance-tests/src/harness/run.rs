//! Runs one case on a store of its own.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

use crate::{
    Case, Profile, Subject, cases,
    harness::{probe, runtime::block_on, store::Store},
};

/// The time limit of a case; a case that exceeds it hangs (R21). The slowest takes
/// seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the case of that id. [`Tests`](crate::Tests) calls it.
///
/// # Panics
/// When the backend breaks a promise, when the case hangs, or when no case has that
/// id.
pub fn run<S: Subject + Default>(profile: Profile, id: &str) {
    run_subject(S::default(), profile, id);
}

/// Like [`run`], with this subject.
pub(crate) fn run_subject(subject: impl Subject, profile: Profile, id: &str) {
    run_on(LIMIT, subject, profile, id);
}

/// Runs the case of that id on this subject, and returns the message with which a test
/// would panic. Use it for a subject that must fail, such as a mutant.
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

/// Like [`judge_case`], with another time limit after which the case counts as hanging.
///
/// # Errors
/// The message of the broken promise.
pub fn judge_case_within(
    limit: Duration,
    subject: impl Subject,
    profile: Profile,
    id: &str,
) -> Result<(), String> {
    caught(|| drop(run_on(limit, subject, profile, id)))
}

/// Returns the message with which the test panics, if it does.
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

/// Returns the names of the commands and scripts that are sent while the case of that
/// id runs. The case cannot detect a fault in any other command or script.
///
/// # Panics
/// As for [`run`].
pub fn commands<S: Subject + Default>(id: &str) -> BTreeSet<String> {
    run_on(LIMIT, S::default(), Profile::Redis, id)
}

fn run_on(
    limit: Duration,
    subject: impl Subject,
    profile: Profile,
    id: &str,
) -> BTreeSet<String> {
    let case = cases().iter().find(|case| case.id == id);
    let case = case.unwrap_or_else(|| panic!("there is no case {id}"));
    let judged = Box::pin(judge(subject, profile, case));
    block_on(async {
        let ended = tokio::time::timeout(limit, judged).await;
        ended.unwrap_or_else(|_| panic!("{} did not end within {limit:?}", case.id))
    })
}

async fn judge(
    subject: impl Subject,
    profile: Profile,
    case: &Case,
) -> BTreeSet<String> {
    let store = Store::start(subject, profile);
    store.prepare().await;
    let capabilities = store.actor("judge").await.capabilities().clone();
    let missing: Vec<_> =
        case.needs.iter().filter(|need| !need.is_met_by(&capabilities)).collect();
    if missing.is_empty() {
        (case.run)(&store).await;
    }
    for need in missing {
        probe::instead(&store, *need).await;
    }
    store.audit_all_queues().await;
    store.commands()
}
