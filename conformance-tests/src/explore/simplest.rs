//! Finds the simplest failing run, and proves that no simpler one fails in the same way.
//!
//! The search is a branch and bound over all decisions of the scene. It ends a run as soon
//! as the run costs as much as the best failing run so far, and where an earlier run has
//! reached the same state, after a decision of the same actor, for no more. Equal decisions
//! behind two equal states add the same to the costs of both, so the search need only continue
//! the cheaper one.

use std::collections::BTreeMap;

use super::{
    choice::Choice,
    faults::Faults,
    search::{Failure, Search},
    shrink::{Cost, cost, kind},
    world::World,
};
use crate::spec::operation::Who;

/// A point of a run at which the search made a decision.
struct Node {
    choices: Vec<Choice>,
    chosen: usize,
}

/// The best failing run so far, and what the search knows.
struct Best {
    failure: Failure,
    cost: Cost,
    /// The least cost for which a run has reached this state, after a decision of this
    /// actor.
    known: BTreeMap<(u64, Option<Who>), Cost>,
}

impl Search<'_> {
    /// Returns the simplest run that fails in the same way as `failure`, and whether that
    /// is proven. It is not if the proof needs more than `most_runs` runs.
    pub(super) fn simplest(&self, failure: Failure, most_runs: u64) -> (Failure, bool) {
        if kind(&failure.wrong) == "DETERMINISTIC" {
            return (failure, false);
        }
        let cost = cost(&failure.schedule);
        let mut best = Best { failure, cost, known: BTreeMap::new() };
        let mut path = Vec::new();
        for _ in 0..most_runs {
            let ended = self.judged(self.play_if_cheaper(&mut path, &mut best));
            if let Err(wrong) = ended {
                best.improve(wrong, &schedule(&path));
            }
            if !next(&mut path) {
                return (best.failure, true);
            }
        }
        (best.failure, false)
    }

    /// Plays a run: repeats the decisions of `path`, and after them always makes the
    /// first possible decision. Ends the run where it can be no cheaper than `best`.
    async fn play_if_cheaper(
        &self,
        path: &mut Vec<Node>,
        best: &mut Best,
    ) -> Result<(), String> {
        let Self { place, subject, scene, .. } = self;
        let has_faults = Faults::of(&best.failure.schedule) != Faults::default();
        let faults = if has_faults { self.faults } else { Faults::default() };
        let mut world = World::start(place, subject, scene, faults).await?;
        for node in path.iter() {
            // This waits until all actors wait again, as before the decision was made.
            world.choices(self.pruning).await?;
            world.apply(node.choices[node.chosen]).await?;
        }
        loop {
            let mut choices = world.choices(self.pruning).await?;
            if choices.is_empty() {
                return self.judge(world).await;
            }
            if !best.may_be_beaten(&schedule(path), world.digest().await?) {
                return Ok(());
            }
            choices.extend(world.draws().await?);
            world.apply(choices[0]).await?;
            path.push(Node { choices, chosen: 0 });
        }
    }
}

impl Best {
    /// Whether a run that begins with these decisions, and is now in this state, may be
    /// simpler than the best one.
    fn may_be_beaten(&mut self, schedule: &[Choice], state: u64) -> bool {
        let cost = cost(schedule);
        let key = (state, schedule.last().map(|choice| choice.who()));
        let is_known = self.known.get(&key).is_some_and(|known| *known <= cost);
        if is_known || cost >= self.cost {
            return false;
        }
        self.known.insert(key, cost);
        true
    }

    fn improve(&mut self, wrong: String, schedule: &[Choice]) {
        let cost = cost(schedule);
        if cost < self.cost && kind(&wrong) == kind(&self.failure.wrong) {
            self.failure = Failure { wrong, schedule: schedule.to_vec() };
            self.cost = cost;
        }
    }
}

fn schedule(path: &[Node]) -> Vec<Choice> {
    path.iter().map(|node| node.choices[node.chosen]).collect()
}

/// Moves on to the decisions of the next run. Returns whether there is one.
fn next(path: &mut Vec<Node>) -> bool {
    while path.last().is_some_and(|node| node.chosen + 1 == node.choices.len()) {
        path.pop();
    }
    match path.last_mut() {
        Some(node) => node.chosen += 1,
        None => return false,
    }
    true
}
