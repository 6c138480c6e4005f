//! Searches through all decisions of a scene, depth first.
//!
//! The search keeps only digests of the states that it has reached. To go back, it
//! begins a new run, repeats the decisions up to a certain point, and makes another
//! decision there.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use relq_core::capabilities::Capabilities;

use super::{
    choice::Choice, faults::Faults, picture, scene::Scene, store::Place, world::World,
};
use crate::{Subject, harness::runtime::Panics};

/// The findings of the search in one scene.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) runs: u64,
    pub(super) states: u64,
    /// The number of decisions of the longest run.
    pub(super) longest: usize,
    /// Whether the search ended early because it reached its limit of known states.
    pub(super) is_bounded: bool,
    /// The first run that broke a rule: its decisions, and what is wrong. `None` if no
    /// run broke a rule.
    pub(super) failure: Option<Failure>,
    /// The digests of the states in which the scene ended.
    pub(super) ends: BTreeSet<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) wrong: String,
    pub(super) schedule: Vec<Choice>,
}

/// Whether the search ends a run when it reaches a state that another run has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pruning {
    KnownStates,
    Nothing,
}

/// A search of one scene on one backend.
pub(super) struct Search<'a> {
    pub(super) place: &'a Place,
    pub(super) subject: Arc<dyn Subject>,
    pub(super) scene: &'a Scene,
    pub(super) faults: Faults,
    pub(super) pruning: Pruning,
    /// The number of known states at which the search ends.
    pub(super) most_states: usize,
    /// How many runs the proof that a failing run is the simplest may take.
    pub(super) most_proof_runs: u64,
}

/// A point of a run at which the search made a decision.
#[derive(Debug, Clone)]
pub(super) struct Node {
    pub(super) choices: Vec<Choice>,
    pub(super) chosen: usize,
    /// The digest of its state. `None` if the search was resumed and has not been here
    /// since.
    state: Option<u64>,
}

impl Node {
    pub(super) fn new(choices: Vec<Choice>, chosen: usize) -> Self {
        Self { choices, chosen, state: None }
    }
}

/// How far the search has come: the decisions of the next run, and the known states.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Whether the search now tries faults. It begins with all runs without faults.
    pub(super) has_faults: bool,
    /// The decisions that the next run repeats. `None` before the first run, empty
    /// after the last.
    pub(super) path: Option<Vec<Node>>,
    pub(super) known: HashSet<u64>,
    pub(super) found: Found,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        place: &'a Place,
        subject: &Arc<dyn Subject>,
        scene: &'a Scene,
        faults: Faults,
    ) -> Self {
        Self {
            place,
            subject: Arc::clone(subject),
            scene,
            faults,
            pruning: Pruning::KnownStates,
            most_states: super::DEFAULT_STATES,
            most_proof_runs: 0,
        }
    }
}

impl Search<'_> {
    /// Whether the backend has the options that the scene needs, and a server that can
    /// hold the commands of its waiting claims.
    pub(super) fn can_play(&self) -> Result<bool, String> {
        let can = self.capabilities()?;
        let has_options = self.scene.needs.iter().all(|need| can.supports(*need));
        let can_wait = self.place.is_server() || !self.scene.has_waiting_claims();
        Ok(has_options && can_wait)
    }

    /// The capabilities that the backend declares.
    pub(super) fn capabilities(&self) -> Result<Capabilities, String> {
        let can = async {
            let (place, subject) = (self.place, &self.subject);
            // The calls of the scene may need an option that the backend lacks.
            let none = Scene::default();
            let world = World::start(place, subject, &none, Faults::default()).await?;
            Ok::<_, String>(world.capabilities().clone())
        };
        let can = Panics::default().on_this_thread(can);
        can.map_err(|error| error.to_string())?
    }

    /// Continues the search from `progress` to its end: first all decisions without
    /// faults, then those with faults. Calls `save` after each run.
    ///
    /// # Errors
    /// The errors of `save`.
    pub(super) fn all(
        &self,
        mut progress: Progress,
        mut save: impl FnMut(&Progress) -> Result<(), String>,
    ) -> Result<Found, String> {
        loop {
            while !self.is_at_an_end(&progress) {
                self.next_run(&mut progress);
                save(&progress)?;
            }
            progress.found.states += progress.known.len() as u64;
            let is_done = progress.found.failure.is_some() || progress.found.is_bounded;
            if is_done || progress.has_faults || self.faults == Faults::default() {
                return Ok(progress.found);
            }
            progress.has_faults = true;
            (progress.path, progress.known) = (None, HashSet::new());
        }
    }

    fn is_at_an_end(&self, Progress { path, found, .. }: &Progress) -> bool {
        found.failure.is_some()
            || found.is_bounded
            || path.as_ref().is_some_and(Vec::is_empty)
    }

    /// Plays the scene once, and determines the decisions of the next run.
    fn next_run(&self, progress: &mut Progress) {
        let mut path = progress.path.take().unwrap_or_default();
        let ended = self.judged(self.run(&mut path, progress));
        progress.found.runs += 1;
        if let Err(wrong) = ended {
            let schedule = path.iter().map(|node| node.choices[node.chosen]);
            let schedule = schedule.collect();
            progress.found.failure = Some(Failure { wrong, schedule });
        }
        while path.last().is_some_and(|node| node.chosen + 1 == node.choices.len()) {
            path.pop();
        }
        if let Some(node) = path.last_mut() {
            node.chosen += 1;
        }
        progress.found.is_bounded =
            !path.is_empty() && progress.known.len() >= self.most_states;
        progress.path = Some(path);
    }

    /// Plays a run on this thread. If the run panics, returns the panic as the failure.
    pub(super) fn judged(
        &self,
        run: impl Future<Output = Result<(), String>>,
    ) -> Result<(), String> {
        let panics = Panics::default();
        let ran = panics.on_this_thread(run);
        let panicked = panics.take();
        match ran {
            Err(error) => Err(format!("no runtime: {error}")),
            Ok(Ok(())) if !panicked.is_empty() => Err(format!("PANIC: {panicked:?}")),
            Ok(ended) => ended,
        }
    }

    /// Plays a run: repeats the decisions of `path`, and after them always makes the
    /// first possible decision.
    async fn run(
        &self,
        path: &mut Vec<Node>,
        progress: &mut Progress,
    ) -> Result<(), String> {
        let Self { place, subject, scene, .. } = self;
        let faults = if progress.has_faults { self.faults } else { Faults::default() };
        let mut world = World::start(place, subject, scene, faults).await?;
        let repeated = path.len();
        for depth in 0.. {
            let mut choices = world.choices(self.pruning).await?;
            if choices.is_empty() {
                break;
            }
            // A difference between two runs shows in the state before the next new
            // decision, wherever it began.
            let is_compared = depth + 1 >= repeated;
            let state = if is_compared { Some(world.digest().await?) } else { None };
            if depth < repeated {
                is_the_same(depth, &path[depth], &choices, state)?;
            } else {
                let is_new = state.is_none_or(|state| progress.known.insert(state));
                if !is_new && self.pruning == Pruning::KnownStates {
                    return Ok(());
                }
                choices.extend(world.draws().await?);
                path.push(Node { choices, chosen: 0, state });
            }
            let node = &path[depth];
            world.apply(node.choices[node.chosen]).await?;
            progress.found.longest = progress.found.longest.max(depth + 1);
        }
        progress.found.ends.insert(world.digest().await?);
        self.judge(world).await
    }

    /// Ends a run, and checks its calls against the reference model.
    pub(super) async fn judge(&self, world: World) -> Result<(), String> {
        let can = world.capabilities().clone();
        let history = world.end().await?;
        history.judge(&can).await
    }

    /// Makes these decisions, and judges the run.
    pub(super) fn replay(&self, schedule: &[Choice]) -> Replayed {
        let mut events = Vec::new();
        let run = async {
            let Self { place, subject, scene, .. } = self;
            let faults = Faults::of(schedule);
            let mut world = World::start(place, subject, scene, faults).await?;
            for choice in schedule {
                let applied = world.apply(*choice).await;
                world.show_jobs().await;
                events.clone_from(&world.events);
                applied?;
            }
            if !world.choices(self.pruning).await?.is_empty() {
                return Err(
                    "the decisions do not reach the end of the scene".to_owned()
                );
            }
            self.judge(world).await
        };
        let judged = self.judged(run);
        let title = judged.as_ref().err().map_or("no rule is broken", String::as_str);
        Replayed {
            picture: picture::text(self.scene, &events),
            svg: picture::svg(self.scene, &events, title),
            judged,
        }
    }

    /// Describes a failed run: returns what is wrong, a picture of the run and the
    /// command line that replays it, as one text; and the picture as SVG.
    pub(super) fn tell(
        &self,
        Failure { wrong, schedule }: &Failure,
        is_simplest: bool,
    ) -> (String, String) {
        let Replayed { picture, svg, judged } = self.replay(schedule);
        let decisions: Vec<_> = schedule.iter().map(ToString::to_string).collect();
        let decisions = decisions.join(" ");
        let repeats = match judged {
            Err(_) => "",
            Ok(()) => "\nDETERMINISTIC: the same decisions, made again, break no rule",
        };
        let simplest =
            if is_simplest { "no simpler run fails in this way\n" } else { "" };
        let scene = &self.scene.name;
        let text = format!(
            "{wrong}{repeats}\n\n{picture}\n{simplest}replay: explore --scene '{scene}' --replay \
             '{decisions}'"
        );
        (text, svg)
    }
}

/// The result of playing given decisions.
pub(super) struct Replayed {
    pub(super) picture: String,
    pub(super) svg: String,
    pub(super) judged: Result<(), String>,
}

/// Checks that the same decisions as before have led to the same point. `choices` are
/// those without draws.
fn is_the_same(
    depth: usize,
    node: &Node,
    choices: &[Choice],
    state: Option<u64>,
) -> Result<(), String> {
    let number = depth + 1;
    let is_drawn = |choice: &&Choice| matches!(choice, Choice::Draw(..));
    if node.choices.iter().filter(|choice| !is_drawn(choice)).ne(choices) {
        return Err(format!(
            "DETERMINISTIC: decision {number} was among {:?}, now among {choices:?}",
            node.choices,
        ));
    }
    match (node.state, state) {
        (Some(before), Some(now)) if before != now => Err(format!(
            "DETERMINISTIC: the same decisions led to another state before decision \
             {number}"
        )),
        _ => Ok(()),
    }
}
