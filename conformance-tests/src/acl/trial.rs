//! Runs a backend with the rights of a user, and records the commands that it needs.
//!
//! A trial has four parts: every case of the suite behind the proxy; every act of
//! [`steps`] once, including whole workers; two acts with each fault at each step; and
//! the cases in real time, which show that the backend needs no right that the proxy
//! hides. The trial's commands are those that the server ran behind the proxy, both
//! direct calls and calls from scripts.

use std::{collections::BTreeSet, sync::Arc};

use super::{restricted::Restricted, user::User, watch::Seen};
use crate::{
    Case, Profile, Scope, Subject, cases,
    harness::{parallel::in_parallel, run::caught, runtime::block_on},
    judge_case,
    server::Server,
    sweep,
};

/// Cases in which one queue pushes to another. The user of one queue may not do that.
const ACROSS_QUEUES: [&str; 2] = [
    "batches::a_completion_goes_to_another_queue",
    "batches::whatever_completes_tells_another_queue",
];

/// Acts that run with each fault. One fault makes the server forget a script, so that
/// the script is sent in full, once in a plain call and once in a wait.
const INJECTED: [&str; 2] = ["push", "claim_that_waits"];

/// Cases that run without `MONITOR`: it writes four bytes for each byte that is not
/// text, and 16 MiB of payload delay the server for seconds.
const UNWATCHED: [&str; 1] = ["no_loss::the_largest_payload_arrives"];

/// The result of running a backend with the rights of a user.
#[derive(Debug, Default)]
pub struct Trial {
    /// Each case and act that failed, with its message.
    pub failures: Vec<String>,
    /// The commands that the server ran for the backend, as ACL rules name them.
    pub commands: BTreeSet<String>,
}

impl Trial {
    /// Runs the trial of a backend as that user.
    pub fn of<S: Subject + Default>(user: &User) -> Self {
        let mut tasks: Vec<_> = on_redis().map(|case| Task::Case(case.id)).collect();
        tasks.extend(INJECTED.map(Task::Injected));
        tasks.push(Task::Acts);
        let in_real_time = cases().iter().filter(|case| case.is_in_real_time);
        tasks.extend(in_real_time.map(|case| Task::Bare(case.id)));
        Self::of_tasks::<S>(user, &tasks)
    }

    /// Adds the result of another trial.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.failures.extend(other.failures);
        self.commands.extend(other.commands);
        self
    }

    fn of_tasks<S: Subject + Default>(user: &User, tasks: &[Task]) -> Self {
        let tried = in_parallel(tasks, |task| task.tried::<S>(user));
        tried.into_iter().fold(Self::default(), Self::and)
    }
}

/// The failures of the selected cases with the rights of that user: each failed case
/// with its message.
pub fn denied<S: Subject + Default>(
    user: &User,
    is_chosen: impl Fn(&Case) -> bool,
) -> Vec<String> {
    let chosen = on_redis().filter(|case| is_chosen(case));
    let chosen: Vec<_> = chosen.map(|case| Task::Case(case.id)).collect();
    Trial::of_tasks::<S>(user, &chosen).failures
}

fn on_redis() -> impl Iterator<Item = &'static Case> {
    cases().iter().filter(|case| case.scope != Scope::Embedded)
}

/// One part of a trial.
#[derive(Debug, Clone, Copy)]
enum Task {
    Case(&'static str),
    Bare(&'static str),
    Injected(&'static str),
    /// All acts, without a fault.
    Acts,
}

impl Task {
    fn tried<S: Subject + Default>(self, user: &User) -> Trial {
        let user = match self {
            Self::Case(id) if ACROSS_QUEUES.contains(&id) => user.with_all_keys(),
            // In one of the acts, a batch pushes its completion to another queue.
            Self::Acts => user.with_all_keys(),
            _ => user.clone(),
        };
        let (seen, subject) = (Seen::default(), Restricted::new(S::default(), user));
        let failures = match self {
            Self::Case(id) if UNWATCHED.contains(&id) => {
                judged(subject, Profile::Redis, id)
            }
            Self::Case(id) => judged(subject.watched(seen.clone()), Profile::Redis, id),
            Self::Bare(id) => judged(subject, Profile::Bare, id),
            Self::Injected(name) => injected(subject.watched(seen.clone()), name),
            Self::Acts => {
                let subject = subject.watched(seen.clone());
                // Steps that no act reaches say nothing about the user's rights.
                let acted = caught(|| drop(sweep::missed_by_all(subject)));
                acted.err().into_iter().collect()
            }
        };
        Trial { failures, commands: seen.take() }
    }
}

fn judged(subject: impl Subject, profile: Profile, id: &str) -> Vec<String> {
    let judged = judge_case(subject, profile, id);
    judged.err().map(|words| format!("{id}: {words}")).into_iter().collect()
}

/// The failures of an act with each fault at each of its steps. Empty if the backend
/// does not support the act.
fn injected(subject: impl Subject, name: &str) -> Vec<String> {
    let scenario = sweep::SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let injected = sweep::one_act(server.address(), Arc::new(subject), scenario);
    match block_on(Box::pin(injected)) {
        Ok(tally) => tally.failures,
        Err(error) => vec![format!("{name}: {error}")],
    }
}
