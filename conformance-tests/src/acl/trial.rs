//! What a backend does with the rights of a user, and which commands that takes.
//!
//! A trial is every case of the suite behind the proxy, every act of [`steps`] once, two
//! acts with each fault at each step, and the cases in real time, which show that nothing
//! is needed that the proxy hides. Whole workers are among the acts. Its commands are those
//! that the server ran behind the proxy, at the top and inside scripts.

use std::{collections::BTreeSet, sync::Arc};

use super::{restricted::Restricted, user::User, watch::Seen};
use crate::{
    Case, Profile, Scope, Subject, cases, caught, judge_case, parallel::in_parallel,
    runtime::block_on, server::Server, steps,
};

/// Cases in which one queue pushes to another, which the user of one queue may not.
const ACROSS_QUEUES: [&str; 2] = [
    "batches::a_completion_goes_to_another_queue",
    "batches::whatever_completes_tells_another_queue",
];

/// Acts that meet each fault: among them that the server has forgotten a script, so that
/// it is sent in full, at a call and at a wait.
const INJECTED: [&str; 2] = ["push", "claim_that_waits"];

/// Cases that are not watched: `MONITOR` writes four bytes for each byte that is not text,
/// and 16 MiB of them hold up the server for seconds.
const UNWATCHED: [&str; 1] = ["no_loss::the_largest_payload_arrives"];

/// What came of trying a backend with the rights of a user.
#[derive(Debug, Default)]
pub struct Trial {
    /// Each case and act that failed, with its words.
    pub failures: Vec<String>,
    /// The commands that the server ran for the backend, as ACL rules name them.
    pub commands: BTreeSet<String>,
}

impl Trial {
    /// Tries a backend as that user.
    pub fn of<S: Subject + Default>(user: &User) -> Self {
        let mut tasks: Vec<_> = on_redis().map(|case| Task::Case(case.id)).collect();
        tasks.extend(INJECTED.map(Task::Injected));
        tasks.push(Task::Acts);
        tasks.extend(BARE.iter().copied().map(Task::Bare));
        Self::of_tasks::<S>(user, &tasks)
    }

    /// Adds what came of another trial.
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

/// What goes wrong when the cases that are chosen are judged with the rights of that
/// user: each case that fails, with its words.
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

/// One thing to try.
#[derive(Debug, Clone, Copy)]
enum Task {
    Case(&'static str),
    Bare(&'static str),
    Injected(&'static str),
    /// All of them, with no fault.
    Acts,
}

impl Task {
    fn tried<S: Subject + Default>(self, user: &User) -> Trial {
        let user = match self {
            Self::Case(id) if ACROSS_QUEUES.contains(&id) => user.with_all_keys(),
            // In one of the acts a batch tells another queue.
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
                // What no act reaches is no matter of rights.
                let acted = caught(|| drop(steps::missed_by_all(subject)));
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

/// What goes wrong in an act with each fault at each of its steps; nothing where the
/// backend does not support what the act needs.
fn injected(subject: impl Subject, name: &str) -> Vec<String> {
    let scenario = steps::SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario = scenario.unwrap_or_else(|| panic!("there is no act {name}"));
    let server = Server::start();
    let injected = steps::one_act(server.address(), Arc::new(subject), scenario);
    match block_on(Box::pin(injected)) {
        Ok(tally) => tally.failures,
        Err(error) => vec![format!("{name}: {error}")],
    }
}

/// Lists the ids of the cases that run in real time.
macro_rules! bare {
    ($($topic:ident { $($case:ident)* })*) => {
        const BARE: &[&str] =
            &[$($(concat!(stringify!($topic), "::", stringify!($case))),*),*];
    };
}
pub(crate) use bare as __bare;

crate::__with_bare_cases!(acl::trial::__bare!);
