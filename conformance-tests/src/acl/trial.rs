//! Runs a backend with the rights of a user, and records the commands that it needs.
//!
//! A trial has three parts: every act of [`steps`](crate::sweep) once, including whole
//! workers; two acts with each fault at each step; and the cases in which backends send
//! commands that no act sends. The trial's commands are those that the server ran behind
//! the proxy, both direct calls and calls from scripts.
//!
//! [`Tests::conformance_as`](crate::Tests::conformance_as) runs every case with the
//! user's rights, so a right that only another case needs is not missed.

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

/// The cases of a trial, by the beginnings of their ids.
const CASES: [&str; 4] =
    ["batches::a_waiter_is_told", "isolation::", "operator::", "waiting::"];

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
        let is_chosen =
            |case: &&Case| CASES.iter().any(|begin| case.id.starts_with(begin));
        let chosen = on_redis().filter(is_chosen);
        let mut tasks: Vec<_> = chosen.map(|case| Task::Case(case.id)).collect();
        tasks.extend(INJECTED.map(Task::Injected));
        tasks.push(Task::Acts);
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
    Injected(&'static str),
    /// All acts, without a fault.
    Acts,
}

impl Task {
    fn tried<S: Subject + Default>(self, user: &User) -> Trial {
        let seen = Seen::default();
        let subject = match self {
            Self::Case(id) => in_case::<S>(user, id),
            // In one of the acts, a batch pushes its completion to another queue.
            Self::Acts => Restricted::new(S::default(), user.with_all_keys()),
            Self::Injected(_) => Restricted::new(S::default(), user.clone()),
        };
        let subject = subject.watched(seen.clone());
        let failures = match self {
            Self::Case(id) => judged(subject, id),
            Self::Injected(name) => injected(subject, name),
            Self::Acts => {
                // Steps that no act reaches say nothing about the user's rights.
                let acted = caught(|| drop(sweep::missed_by_all(subject)));
                acted.err().into_iter().collect()
            }
        };
        Trial { failures, commands: seen.take() }
    }
}

/// The backend with the user's rights in the case of that id.
pub(crate) fn in_case<S: Subject + Default>(user: &User, id: &str) -> Restricted<S> {
    let is_across = ACROSS_QUEUES.contains(&id);
    let user = if is_across { user.with_all_keys() } else { user.clone() };
    Restricted::new(S::default(), user)
}

fn judged(subject: impl Subject, id: &str) -> Vec<String> {
    let judged = judge_case(subject, Profile::Redis, id);
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
