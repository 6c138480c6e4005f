//! Runs a backend with the rights of a user, and records the commands that it needs.
//!
//! An act is one call of the queue traits, or one whole worker, as
//! [`sweep`](crate::sweep) runs it. A trial has three parts: every act once; two acts
//! with each fault at each step; and the cases in which backends send commands that no
//! act sends. The trial's commands are those that the server ran behind the proxy, both
//! direct calls and calls from scripts.
//!
//! [`Tests::conformance_as`](crate::Tests::conformance_as) runs every case with the
//! user's rights, so a right that only another case needs is not missed.

use std::{collections::BTreeSet, sync::Arc};

use super::{restricted::Restricted, user::User, watch::Seen};
use crate::{
    Case, Profile, Scope, Subject, cases,
    harness::{parallel::in_parallel, run::caught, runtime::block_on_this_thread},
    judge_case,
    server::Server,
    sweep,
};

/// The cases in which a batch of one queue pushes its completion job to another queue.
/// They run with rights to all keys, because the user of one queue may not push there.
const ACROSS_QUEUES: [&str; 6] = [
    "batches::a_completion_elsewhere_is_stored_as_a_push_stores_a_job",
    "batches::a_completion_goes_to_another_queue",
    "batches::a_settlement_of_many_pieces_tells_another_queue",
    "batches::completions_of_two_queues_are_two_jobs",
    "batches::whatever_completes_tells_another_queue",
    "results::a_completion_job_keeps_its_result",
];

/// The calls that a trial runs with each fault at each step. One fault makes the server
/// forget a script, so that the client sends the script in full: once for a push and
/// once for a claim that waits.
const INJECTED: [&str; 2] = ["push", "claim_that_waits"];

/// The cases that a trial runs: those whose id begins with one of these texts.
const CASES: [&str; 5] = [
    "batches::a_waiter_is_told",
    "isolation::",
    "operator::",
    "results::a_result_wakes_its_waiter",
    "waiting::",
];

/// The result of running a backend with the rights of a user.
#[derive(Debug, Default)]
pub struct Trial {
    /// The cases and acts that failed, each with its message.
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

    /// Returns this trial with the failures and commands of another trial added.
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

/// Runs the selected cases with the rights of that user. Returns each case that failed,
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

/// One part of a trial: a case, an act with each fault, or all acts without a fault.
#[derive(Debug, Clone, Copy)]
enum Task {
    Case(&'static str),
    Injected(&'static str),
    /// A part of the trial that runs every act once, without a fault.
    Acts,
}

impl Task {
    fn tried<S: Subject + Default>(self, user: &User) -> Trial {
        let seen = Seen::default();
        let subject = match self {
            Self::Case(id) => in_case::<S>(user, id),
            // One act pushes a batch's completion job to another queue, which needs
            // rights to that queue.
            Self::Acts => Restricted::new(S::default(), user.with_all_keys()),
            Self::Injected(_) => Restricted::new(S::default(), user.clone()),
        };
        let subject = subject.watched(seen.clone());
        let failures = match self {
            Self::Case(id) => judged(subject, id),
            Self::Injected(name) => injected(subject, name),
            Self::Acts => {
                // The result, a list of steps that no act reaches, is dropped: it says
                // nothing about the user's rights.
                let acted = caught(|| drop(sweep::missed_by_all(subject)));
                acted.err().into_iter().collect()
            }
        };
        Trial { failures, commands: seen.take() }
    }
}

/// Returns the backend with the rights that the case `id` needs: those of the user, and
/// all keys in a case that pushes to another queue.
pub(crate) fn in_case<S: Subject + Default>(user: &User, id: &str) -> Restricted<S> {
    let is_across = ACROSS_QUEUES.contains(&id);
    let user = if is_across { user.with_all_keys() } else { user.clone() };
    Restricted::new(S::default(), user)
}

fn judged(subject: impl Subject, id: &str) -> Vec<String> {
    let judged = judge_case(subject, Profile::Redis, id);
    judged.err().map(|words| format!("{id}: {words}")).into_iter().collect()
}

/// Runs the act `name` with each fault at each of its steps, and returns the failures.
/// Returns none if the backend does not support the act.
fn injected(subject: impl Subject, name: &str) -> Vec<String> {
    let scenario = sweep::SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let (subject, share) = (Arc::new(subject), sweep::Share::Whole);
    let injected = sweep::one_act(server.address(), subject, scenario, share);
    match block_on_this_thread(Box::pin(injected)) {
        Ok(tally) => tally.failures,
        Err(error) => vec![format!("{name}: {error}")],
    }
}
