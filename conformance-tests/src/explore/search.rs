//! The search through all decisions of a scene, depth first.
//!
//! The search keeps no states. It begins each run anew and repeats the decisions up to
//! the point at which it wants another one.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use relq_core::capabilities::Capabilities;

use super::{choice::Choice, picture::draw, scene::Scene, world::World};
use crate::{Subject, harness::runtime::Panics, server::Server};

/// What the search found in one scene.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    pub(super) runs: u64,
    pub(super) states: u64,
    /// The number of decisions of the longest run.
    pub(super) longest: usize,
    /// What is wrong in the first run that broke a rule, and its decisions.
    pub(super) failure: Option<Failure>,
    /// The digests of the states in which the scene ended.
    pub(super) ends: BTreeSet<u64>,
}

#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) wrong: String,
    pub(super) schedule: Vec<Choice>,
}

/// Whether runs that reach a known state end there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pruning {
    KnownStates,
    Nothing,
}

/// The store and the backend of a search.
pub(super) struct Search<'a> {
    pub(super) server: &'a Server,
    pub(super) subject: Arc<dyn Subject>,
    pub(super) scene: &'a Scene,
    pub(super) deaths: usize,
    pub(super) pruning: Pruning,
}

/// A point at which a decision was made.
struct Node {
    choices: Vec<Choice>,
    chosen: usize,
}

impl Search<'_> {
    /// Whether the backend supports all options of the scene.
    pub(super) fn is_supported(&self) -> Result<bool, String> {
        let can = async {
            let world = World::start(self.server, &self.subject, self.scene, 0).await?;
            Ok::<_, String>(world.capabilities().clone())
        };
        let can = Panics::default().on_this_thread(can);
        let can: Capabilities = can.map_err(|error| error.to_string())??;
        Ok(self.scene.needs.iter().all(|need| can.supports(*need)))
    }

    /// Explores all decisions, first those without a death.
    pub(super) fn all(&self) -> Found {
        let mut found = Found::default();
        for deaths in 0..=self.deaths {
            if found.failure.is_none() {
                self.with_deaths(deaths, &mut found);
            }
        }
        found
    }

    fn with_deaths(&self, deaths: usize, found: &mut Found) {
        let (mut known, mut path) = (HashSet::new(), Vec::<Node>::new());
        loop {
            let panics = Panics::default();
            let run = self.run(deaths, &mut path, &mut known, found);
            let ran = panics.on_this_thread(run);
            found.runs += 1;
            let panicked = panics.take();
            let ended = match ran {
                Err(error) => Err(format!("no runtime: {error}")),
                Ok(Ok(())) if !panicked.is_empty() => {
                    Err(format!("PANIC: {panicked:?}"))
                }
                Ok(ended) => ended,
            };
            if let Err(wrong) = ended {
                let schedule = path.iter().map(|node| node.choices[node.chosen]);
                let schedule = schedule.collect();
                found.failure = Some(Failure { wrong, schedule });
                break;
            }
            while path.last().is_some_and(|node| node.chosen + 1 == node.choices.len())
            {
                path.pop();
            }
            match path.last_mut() {
                Some(node) => node.chosen += 1,
                None => break,
            }
        }
        found.states += known.len() as u64;
    }

    /// Repeats the decisions of the path, and then makes the first possible one at each
    /// new point.
    async fn run(
        &self,
        deaths: usize,
        path: &mut Vec<Node>,
        known: &mut HashSet<u64>,
        found: &mut Found,
    ) -> Result<(), String> {
        let mut world =
            World::start(self.server, &self.subject, self.scene, deaths).await?;
        for depth in 0.. {
            let choices = world.choices().await?;
            if choices.is_empty() {
                break;
            }
            if let Some(node) = path.get(depth) {
                if node.choices != choices {
                    return Err(format!(
                        "DETERMINISTIC: decision {} was among {:?}, now among {choices:?}",
                        depth + 1,
                        node.choices,
                    ));
                }
            } else {
                let digest = world.digest().await?;
                if !known.insert(digest) && self.pruning == Pruning::KnownStates {
                    return Ok(());
                }
                path.push(Node { choices, chosen: 0 });
            }
            let node = &path[depth];
            world.apply(node.choices[node.chosen]).await?;
            found.longest = found.longest.max(depth + 1);
        }
        found.ends.insert(world.digest().await?);
        let can = world.capabilities().clone();
        let history = world.end().await?;
        history.judge(&self.subject, &can).await
    }

    /// Makes these decisions, and judges the run. Returns its picture.
    pub(super) fn replay(&self, schedule: &[Choice]) -> (String, Result<(), String>) {
        let deaths = schedule.iter().filter(|choice| choice.is_death()).count();
        let mut events = Vec::new();
        let run = async {
            let mut world =
                World::start(self.server, &self.subject, self.scene, deaths).await?;
            for choice in schedule {
                let applied = world.apply(*choice).await;
                world.count_jobs().await;
                events.clone_from(&world.events);
                applied?;
            }
            if !world.choices().await?.is_empty() {
                return Err(
                    "the decisions do not reach the end of the scene".to_owned()
                );
            }
            let can = world.capabilities().clone();
            let history = world.end().await?;
            history.judge(&self.subject, &can).await
        };
        let ran = Panics::default().on_this_thread(run);
        let ran = ran.unwrap_or_else(|error| Err(format!("no runtime: {error}")));
        (draw(self.scene, &events), ran)
    }

    /// What is wrong in a run, its picture, and the words that replay it.
    pub(super) fn picture(&self, Failure { wrong, schedule }: &Failure) -> String {
        let (picture, again) = self.replay(schedule);
        let decisions: Vec<_> = schedule.iter().map(ToString::to_string).collect();
        let decisions = decisions.join(" ");
        let repeats = match again {
            Err(_) => "",
            Ok(()) => "\nDETERMINISTIC: the same decisions, made again, break no rule",
        };
        let scene = &self.scene.name;
        format!(
            "{wrong}{repeats}\n\n{picture}\nreplay: explore --scene {scene} --replay \
             '{decisions}'"
        )
    }
}
