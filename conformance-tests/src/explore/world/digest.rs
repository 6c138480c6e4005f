//! The digest of a state.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use super::World;
use crate::{explore::history::History, spec::recorded::RecordedCall};

impl World {
    /// Returns a digest of everything that decides how the run can continue: the
    /// store's data, the time, what each actor has seen, the waiting commands, and
    /// which calls ended before others began.
    pub(in super::super) async fn digest(&mut self) -> Result<u64, String> {
        let parked = self.settle_down().await?;
        let mut hasher = DefaultHasher::new();
        self.store.data().await?.hash(&mut hasher);
        format!("{:?}", self.store.clock()).hash(&mut hasher);
        format!("{:?}", (self.time.len(), self.faults_left)).hash(&mut hasher);
        self.store.clock().sleepers().hash(&mut hasher);
        if let Some(connections) = self.store.connections() {
            // The order counts, because the server serves the held commands in this
            // order.
            (connections.held(), &self.frozen, self.late).hash(&mut hasher);
        }
        let mut waiting: Vec<_> = parked
            .iter()
            .map(|step| (&step.actor, step.label(), step.arguments))
            .collect();
        waiting.sort_unstable();
        waiting.hash(&mut hasher);
        for actor in self.actors.values() {
            self.store.seen(&actor.name).hash(&mut hasher);
        }
        let state = self.shared.state();
        hash_history(&state.history, &mut hasher);
        let mut dead: Vec<_> = state.ended.clone();
        dead.sort_unstable();
        format!("{dead:?}").hash(&mut hasher);
        Ok(hasher.finish())
    }
}

/// Adds the calls with their replies, and which of them ended before which began.
fn hash_history(history: &History, hasher: &mut DefaultHasher) {
    let mut calls: Vec<_> = history.overlapping.iter().enumerate().collect();
    calls.sort_by_key(|(_, one)| one.actor);
    let mut names = BTreeMap::new();
    for (number, (at, one)) in calls.into_iter().enumerate() {
        names.insert(at, number);
        told(&one.call).hash(hasher);
        (one.ended.is_some(), one.was_never_sent, one.is_late).hash(hasher);
    }
    let pairs = history.precedence().into_iter();
    let mut pairs: Vec<_> =
        pairs.map(|(one, other)| (names[&one], names[&other])).collect();
    pairs.sort_unstable();
    pairs.hash(hasher);
}

/// Returns a call and its replies as text. Whether a broken connection is reported as
/// closed or as reset is random, so an error counts only by its effect.
fn told(call: &RecordedCall) -> String {
    let text = format!("{call:?}");
    match text.split_once("Err((") {
        Some((before, error)) if call.is_hit => {
            let effect = error.split(',').next().unwrap_or_default();
            format!("{before}{effect}")
        }
        _ => text,
    }
}
