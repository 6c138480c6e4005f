//! Every order of the commands of a few actors, on a real server (depth 3).
//!
//! A scene has a few actors with a few calls each, such as a worker that settles, a
//! reaper that recovers, and time that passes. The real client makes the calls. Each of
//! its commands waits at the fault proxy, and the search decides which of them runs
//! next, when time passes, and at which of them an actor dies, before the command ran or
//! after it. The search begins each run anew on an empty server, repeats the decisions
//! up to a point, and decides differently there, until every decision was made at every
//! point. At the end of a run all leases end, and the queue is recovered and drained.
//!
//! **Judged** by the reference model of [`spec`](crate::spec), which judges one call
//! after the other. Calls that overlap in time may have taken effect in either order. So
//! a run goes by the rules if the model accepts its calls in some order that keeps each
//! call before those that began after it had ended (linearizability: Herlihy and Wing,
//! *ACM TOPLAS* 12(3), 1990; the search is that of Wing and Gong, 1993). Stats and the
//! audit are compared when no call is under way.
//!
//! **Complete** for its scenes: for these calls, with at most one death in a run, no
//! order of the commands is left out. A run ends early only where it reaches a known
//! state: the same data on the server and the same time, and the same for each actor:
//! every byte that it was sent, the command that waits, and which calls ended before
//! which began. What follows is decided by these, and what the model has to judge is equal. A
//! test compares the search with one that prunes nothing.
//!
//! **Deaths.** An actor dies before a command of its own. A death after a command, whose
//! reply nobody gets, is the death before the actor's next command: the store is the same,
//! and the judge, who knows the reply, knows more.
//!
//! **Not explored**: claims that wait, batches, two deaths in one run, broken
//! connections of living actors, and commands of dead ones that arrive late. The other
//! depths have these, without every order. The server's order of equal keys in `SCAN` and
//! its other choices are those of the server at hand. Scripts that run at the same time
//! of the clock see the same microsecond, and the ids of a stream's entries are of that
//! time.
//!
//! **Replay.** A failure prints its scene and its decisions, one letter for each, as
//! `a a r!dies -`: worker a's command runs, its next one does, the reaper dies before its
//! command runs, time passes.

mod caller;
mod choice;
mod history;
mod picture;
mod scene;
mod search;
mod world;

use std::{
    collections::BTreeSet,
    fmt,
    str::FromStr,
    sync::Arc,
    time::{Duration, Instant},
};

use relq_core::capabilities::Capability;

use self::{
    choice::Choice,
    scene::Scene,
    search::{Pruning, Search},
};
use crate::{Subject, server::Server};

/// The result of exploring one scene.
#[derive(Debug, Clone)]
pub struct Explored {
    /// The scene's name.
    pub scene: String,
    /// How often the scene was played.
    pub runs: u64,
    /// The number of different states in which a decision was made.
    pub states: u64,
    /// The number of decisions of the longest run.
    pub longest: usize,
    /// How long it took.
    pub took: Duration,
    /// What is wrong, with a picture of the run and the words that replay it. `None`
    /// when every run went by the rules: then the scene was explored completely.
    pub failure: Option<String>,
}

/// The names of the scenes.
pub fn scenes() -> impl Iterator<Item = &'static str> {
    scene::SCENES.iter().map(|scene| scene.name)
}

/// The options that the scene of that name needs.
pub(crate) fn needs(name: &str) -> &'static [Capability] {
    let scene = scene::SCENES.iter().find(|scene| scene.name == name);
    scene.map_or(&[], |scene| scene.needs)
}

/// Explores the scene of that name, with at most `deaths` deaths in a run.
///
/// A scene that needs an option that the backend does not support is not played:
/// `None`.
///
/// # Errors
/// When no scene has that name.
pub fn explore(
    subject: &Arc<dyn Subject>,
    name: &str,
    deaths: usize,
) -> Result<Option<Explored>, String> {
    let scene = Scene::named(name)?;
    let server = Server::start();
    let search = Search {
        server: &server,
        subject: Arc::clone(subject),
        scene: &scene,
        deaths,
        pruning: Pruning::KnownStates,
    };
    if !search.is_supported()? {
        return Ok(None);
    }
    let start = Instant::now();
    let found = search.all();
    let failure = found.failure.as_ref().map(|failure| search.picture(failure));
    Ok(Some(Explored {
        scene: scene.name,
        runs: found.runs,
        states: found.states,
        longest: found.longest,
        took: start.elapsed(),
        failure,
    }))
}

/// The ends of a scene that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub struct Ends {
    /// How often the scene was played.
    pub runs: u64,
    /// The digests of the states in which it ended.
    pub ends: BTreeSet<u64>,
}

/// The ends of a scene: of the usual search, and of one that prunes nothing.
///
/// # Errors
/// When no scene has that name, or a run breaks a rule.
#[doc(hidden)]
pub fn ends(
    subject: &Arc<dyn Subject>,
    name: &str,
    deaths: usize,
) -> Result<[Ends; 2], String> {
    let scene = Scene::named(name)?;
    let server = Server::start();
    let found = [Pruning::KnownStates, Pruning::Nothing].map(|pruning| {
        let subject = Arc::clone(subject);
        let search =
            Search { server: &server, subject, scene: &scene, deaths, pruning };
        let found = search.all();
        match found.failure {
            Some(failure) => Err(failure.wrong),
            None => Ok(Ends { runs: found.runs, ends: found.ends }),
        }
    });
    let [pruned, whole] = found;
    Ok([pruned?, whole?])
}

/// Plays a scene with these decisions, and returns its picture.
///
/// # Errors
/// When the scene or a decision is unknown, and when the run breaks a rule: with the
/// picture.
pub fn replay(
    subject: &Arc<dyn Subject>,
    name: &str,
    decisions: &str,
) -> Result<String, String> {
    let scene = Scene::named(name)?;
    let schedule = decisions.split_whitespace().map(Choice::from_str);
    let schedule: Vec<Choice> = schedule.collect::<Result<_, _>>()?;
    let server = Server::start();
    let deaths = schedule.iter().filter(|choice| choice.is_death()).count();
    let search = Search {
        server: &server,
        subject: Arc::clone(subject),
        scene: &scene,
        deaths,
        pruning: Pruning::KnownStates,
    };
    let (picture, judged) = search.replay(&schedule);
    match judged {
        Ok(()) => Ok(picture),
        Err(wrong) => Err(format!("{wrong}\n\n{picture}")),
    }
}

/// Explores a scene, for a test. [`Tests`](crate::Tests) calls this.
///
/// # Panics
/// When a run breaks a rule. The message says which and has a picture of the run.
pub fn run<S: Subject + Default>(name: &str, deaths: usize) {
    let subject: Arc<dyn Subject> = Arc::new(S::default());
    match explore(&subject, name, deaths) {
        Ok(Some(Explored { failure: Some(failure), .. })) => panic!("{failure}"),
        Ok(explored) => println!("{explored:?}"),
        Err(wrong) => panic!("{wrong}"),
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scene, runs, states, longest, took, failure } = self;
        let result = if failure.is_some() { "FAILED" } else { "complete" };
        let seconds = took.as_secs_f64();
        write!(
            f,
            "{scene:<36} {runs:>6} runs {states:>6} states {longest:>3} decisions \
             {seconds:>6.1} s  {result}"
        )?;
        match failure {
            Some(failure) => write!(f, "\n{failure}"),
            None => Ok(()),
        }
    }
}
