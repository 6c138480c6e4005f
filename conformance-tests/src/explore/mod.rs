//! Tries every order of the commands of a few actors, on a real store.
//!
//! A scene has a few actors with a few calls each, such as a worker that settles, a
//! reaper that recovers, and time that passes. The real client makes the calls. Each of
//! its commands waits: at the fault proxy for a backend on Redis, and in a hook before
//! each statement for an [embedded](Transactions) one. The search decides which command
//! runs next, when time passes, and before or after which command an actor dies. Each run
//! begins on an empty store, repeats the decisions of an earlier run up to a point, and
//! decides differently there, until every possible decision was tried at every point. At
//! the end of a run all leases end, and the queue is recovered and drained.
//!
//! **Judged** by the reference model of [`spec`](crate::spec), which judges one call
//! after the other. Calls that overlap in time may have taken effect in either order. So
//! a run keeps the rules if the model accepts its calls in some order that keeps each
//! call before those that began after it had ended (linearizability: Herlihy and Wing,
//! *ACM TOPLAS* 12(3), 1990; the search is that of Wing and Gong, 1993). Stats and the
//! audit are compared when no call is under way.
//!
//! **Complete** for its scenes: for these calls, and for at most as many faults and
//! draws in a run as [`Limits`] says, no order of the commands is left out. A run ends
//! early only where it reaches a known state. The state is everything that decides how a
//! run can continue:
//!
//! - the data in the store, and the time;
//! - for each actor, every byte that it was sent and the time at which it was sent (or
//!   the result of each of its statements and readings of the clock), and the commands
//!   that wait. Its client computes from nothing else: its random numbers
//!   come from a seed, its clock is the virtual one;
//! - the ends of all sleeps;
//! - the commands that the server holds, in the order in which it will serve them, and
//!   the commands of dead actors that are still to arrive;
//! - which calls ended before which began, with their replies, for the judge;
//! - the steps of time and the faults that are left.
//!
//! So two runs that reach equal states go on equally and are judged equally, and the
//! search continues one of them. This pruning is the only reduction for a server: the
//! search uses neither sleep sets nor dynamic partial-order reduction. Two orders of
//! commands that do not affect each other end in the same state, and the search
//! continues it once. Sleep sets would save the last command before such a state, and
//! nothing behind it. Together with pruning by state they miss behaviours, unless each
//! known state also keeps its sleep set (Godefroid, *LNCS* 1032, 1996), and they need to
//! know which keys each script read and wrote. A test compares the final states of small
//! scenes with those of a search that prunes nothing. A collision of two 64-bit digests
//! would hide a state; with a million states its chance is below 1 in 30 million.
//!
//! **Deterministic.** The same decisions lead to the same state. Each run repeats the
//! decisions of the one before it up to its first new decision, and compares the state
//! there with that of the run before. Clients, proxy and timers run on one thread, so
//! only the server is concurrent. One command may serve two commands that the server
//! holds, whose replies arrive in any order. The proxy therefore passes such replies on
//! one after the other, in the order in which the server held the commands, and each of
//! them only when all clients wait. Other orders of replies at one client are not
//! tried.
//!
//! **Statements inside of a transaction** of an embedded store are independent of all
//! that other actors do: they read what was committed when the transaction began, and no
//! other connection sees what they write before the commit. The search runs them at once,
//! and decides only about the beginning and the end of each transaction. After a death at
//! such a statement the store has the same data as after a death at the transaction's
//! end. A statement that would wait for the lock of another transaction cannot run before
//! that transaction has ended, so no real time passes.
//!
//! **Time** passes in the steps that the scene names, at any moment. When all that is
//! left is to wait, it passes until the next sleep ends.
//!
//! **Claims that wait** have commands that the server holds, on connections that an
//! earlier claim of the actor has opened. The actor of such a command is served, times
//! out, or dies: the server sees its connections end, or does not notice. A claim may
//! only return without a job if there was none at the end of its wait, less the
//! backend's lateness.
//!
//! **Faults.** An actor dies before a command of its own. A death after a command is
//! tried as a death before the actor's next command: the data in the store is the same,
//! and the judge checks the reply of the command as well. The command of a dead actor may
//! run later, at any moment before the end. A connection of a living actor breaks before
//! a command ran or after it.
//!
//! **The random answers of the server** are decisions of the search, as often in a run as
//! [`Faults::draws`] says. `RANDOMKEY`, `SRANDMEMBER`, `ZRANDMEMBER`, `SCAN` and
//! `SSCAN` answer from a sorted list of the keys or members, also inside scripts.
//! Without a decision they answer in its order, `RANDOMKEY` with one key after the
//! other. Otherwise the decision names the places of up to four draws. `RANDOMKEY`
//! returns the keys at these places, and then the last of them again and again. From
//! another list, each draw moves a member to the front. All draws of a script use the
//! same places. A script or command that only reads is tried on the server, in the same
//! state, with all draws, and the search decides between those that lead to different
//! replies. So the bookkeeping keys of keyspace do not multiply its runs. For a script
//! that writes, the search decides between all orders of three members and any one
//! member first. Not tried are the draws of scripts in a transaction, of commands that
//! run late or lose their reply, and of the calls after the scene; the pages into which
//! SCAN divides a larger data set; and lists of more than five members in every order,
//! of which about 150 are tried. Scripts that run at the same time of the clock see the
//! same microsecond, and the ids of a stream's entries are of that time.
//!
//! **Random orders.** A scene of [`large_scenes`] has too many orders to try them all.
//! [`explore_random`] plays it in orders that are drawn from a seed.
//!
//! **Replay.** A failure prints its scene and its decisions, one word for each. In
//! `a a2 r!dies -` the command of worker `a` runs, then the second of its two waiting
//! commands runs, then the reaper `r` dies before its command runs, and then time passes.
//! `a!freezes` is a death that the server does not notice. After `a!late` the command of
//! the dead actor still runs, at the decision `+`. `a!cut` and `a!lost` are breaks of the
//! connection before the command and after it. `a~2.0` is a command whose draws take the
//! places 2 and 0, counted from 0.
//!
//! **Simplest.** A failure is shrunk before it is shown: first by leaving decisions out and
//! making them earlier, then by a search through all runs that are simpler. If that search
//! ends within [`Limits::proof_runs`] runs, the failure says that no simpler run fails in
//! the same way. A run with fewer faults is simpler; between equals, the one with fewer
//! decisions, then with fewer draws, then with fewer changes from one actor to another.

mod choice;
mod ends;
mod explored;
mod faults;
mod history;
mod limits;
mod picture;
mod random;
mod saved;
mod scene;
mod search;
mod shrink;
mod simplest;
mod store;
mod world;

use std::{path::PathBuf, str::FromStr, sync::Arc, time::Instant};

use relq_core::capabilities::Capability;

#[doc(hidden)]
pub use self::ends::{Ends, ends};
use self::{
    choice::Choice,
    saved::SavedSearch,
    scene::Scene,
    search::{Found, Progress, Replayed, Search},
    store::Place,
};
pub use self::{
    explored::Explored,
    faults::Faults,
    limits::{DEFAULT_STATES, Limits},
    store::{Bound, Digest, Transactions},
};
use crate::{Profile, Subject};

/// The names of the scenes that are explored completely.
pub fn scenes() -> impl Iterator<Item = &'static str> {
    scene::SCENES.iter().map(|scene| scene.name)
}

/// The names of the scenes for that kind of store. An embedded store has no scenes with
/// waiting claims, because no server holds a command there.
pub(crate) fn scenes_on(profile: Profile) -> impl Iterator<Item = &'static str> {
    let is_for = move |scene: &&scene::SceneText| {
        profile == Profile::Redis || !scene.has_waiting_claims()
    };
    scene::SCENES.iter().filter(is_for).map(|scene| scene.name)
}

/// The names of the scenes that have too many orders to try them all. They are for
/// [`explore_random`].
pub fn large_scenes() -> impl Iterator<Item = &'static str> {
    scene::LARGE_SCENES.iter().map(|scene| scene.name)
}

/// The options that the scene of that name needs.
pub(crate) fn needs(name: &str) -> &'static [Capability] {
    let scene = scene::SCENES.iter().find(|scene| scene.name == name);
    scene.map_or(&[], |scene| scene.needs)
}

/// Whether the search can stop each actor of the backend at each of its steps.
pub(crate) fn can_explore(subject: &dyn Subject, profile: Profile) -> bool {
    match profile {
        Profile::Redis => true,
        Profile::Embedded => subject.processes().is_some(),
        Profile::Bare => false,
    }
}

/// Explores the scene of that name, or the one that the text describes, with at most
/// `deaths` deaths in a run. The text of a scene is a setup, then the calls of each actor:
/// `p push j | a claim 1 l0; a settle 0D | r recover 5 | - advance 3`.
///
/// A scene that needs an option that the backend does not support is not played:
/// `None`.
///
/// # Errors
/// When no scene has that name, or the text is wrong.
pub fn explore(
    subject: &Arc<dyn Subject>,
    name: &str,
    deaths: usize,
) -> Result<Option<Explored>, String> {
    explore_within(subject, name, &Limits::of(Faults::deaths(deaths)))
}

/// Explores a scene as [`explore`] does, within these limits.
///
/// # Errors
/// When no scene has that name, or when the file of the search cannot be used.
pub fn explore_within(
    subject: &Arc<dyn Subject>,
    name: &str,
    limits: &Limits,
) -> Result<Option<Explored>, String> {
    let scene = Scene::named(name)?;
    let place = Place::of(&**subject);
    let search = Search {
        most_states: limits.states,
        most_proof_runs: limits.proof_runs,
        ..Search::new(&place, subject, &scene, limits.faults)
    };
    if !search.can_play()? {
        return Ok(None);
    }
    let start = Instant::now();
    let found = match &limits.resume {
        None => search.all(Progress::default(), |_| Ok(()))?,
        Some(path) => {
            let (version, can) = (env!("CARGO_PKG_VERSION"), search.capabilities()?);
            let what = format!("{} {version} {name} {:?}", can.backend, limits.faults);
            resumed(&search, path.clone(), what)?
        }
    };
    Ok(Some(Explored::of(&search, found, start)))
}

/// Plays a scene `runs` times in random orders of its commands, which depend only on
/// `seed`.
///
/// # Errors
/// When no scene has that name.
pub fn explore_random(
    subject: &Arc<dyn Subject>,
    name: &str,
    faults: Faults,
    (seed, runs): (u64, u64),
) -> Result<Option<Explored>, String> {
    let scene = Scene::named(name)?;
    let place = Place::of(&**subject);
    let search = Search::new(&place, subject, &scene, faults);
    if !search.can_play()? {
        return Ok(None);
    }
    let start = Instant::now();
    let found = Found { is_bounded: true, ..search.random(seed, runs) };
    Ok(Some(Explored::of(&search, found, start)))
}

fn resumed(search: &Search<'_>, path: PathBuf, what: String) -> Result<Found, String> {
    let mut saved = SavedSearch::new(path, what);
    let progress = saved.load()?;
    let found = search.all(progress, |progress| saved.save(progress))?;
    saved.remove()?;
    Ok(found)
}

/// Plays a scene with these decisions, and returns its picture.
///
/// # Errors
/// When the scene or a decision is unknown. When the run breaks a rule, the error has
/// the picture, too.
pub fn replay(
    subject: &Arc<dyn Subject>,
    name: &str,
    decisions: &str,
) -> Result<String, String> {
    let Replayed { picture, judged, .. } = replayed(subject, name, decisions)?;
    match judged {
        Ok(()) => Ok(picture),
        Err(wrong) => Err(format!("{wrong}\n\n{picture}")),
    }
}

/// Plays a scene with these decisions, and returns its picture as SVG, whether or not
/// the run breaks a rule.
///
/// # Errors
/// When the scene or a decision is unknown.
pub fn picture(
    subject: &Arc<dyn Subject>,
    name: &str,
    decisions: &str,
) -> Result<String, String> {
    replayed(subject, name, decisions).map(|replayed| replayed.svg)
}

fn replayed(
    subject: &Arc<dyn Subject>,
    name: &str,
    decisions: &str,
) -> Result<Replayed, String> {
    let scene = Scene::named(name)?;
    let schedule = decisions.split_whitespace().map(Choice::from_str);
    let schedule: Vec<Choice> = schedule.collect::<Result<_, _>>()?;
    let place = Place::of(&**subject);
    let search = Search::new(&place, subject, &scene, Faults::of(&schedule));
    if !search.can_play()? {
        return Err(format!("the backend lacks an option that {name} needs"));
    }
    Ok(search.replay(&schedule))
}

/// Explores a scene as a test, which [`Tests`](crate::Tests) calls.
///
/// # Panics
/// When a run breaks a rule. The message says which one, and has a picture of the run.
pub fn run<S: Subject + Default>(name: &str, deaths: usize) {
    let subject: Arc<dyn Subject> = Arc::new(S::default());
    match explore(&subject, name, deaths) {
        Ok(Some(Explored { failure: Some(failure), .. })) => panic!("{failure}"),
        Ok(explored) => println!("{explored:?}"),
        Err(wrong) => panic!("{wrong}"),
    }
}
