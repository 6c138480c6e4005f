//! The decisions that are possible at a moment of a run.

use super::{Actor, World};
use crate::{
    explore::{
        choice::{Choice, WaitingStep},
        faults::Faults,
        search::Pruning,
        store::Connections,
    },
    proxy::StepRecord,
    spec::operation::{Act, Who},
};

impl World {
    /// Returns the decisions that are possible now, or none if the scene has ended.
    ///
    /// If no command waits but a call is running, the only decision is that time passes
    /// until the next sleep ends.
    ///
    /// If a step is independent of all others, running it is the only decision, unless
    /// the search prunes nothing: all other decisions lead to the same states after
    /// this step.
    pub(in super::super) async fn choices(
        &mut self,
        pruning: Pruning,
    ) -> Result<Vec<Choice>, String> {
        let parked = self.settle_down().await?;
        let steps = self.waiting_steps(&parked);
        let is_independent =
            |(_, step): &&(WaitingStep, &StepRecord)| self.store.is_independent(step);
        if pruning == Pruning::KnownStates
            && let Some((waiting, _)) = steps.iter().find(is_independent)
        {
            return Ok(vec![Choice::Pass(*waiting)]);
        }
        let can_run = steps.iter().filter(|(_, step)| self.store.can_run(step));
        let mut choices: Vec<_> = can_run.map(|it| Choice::Pass(it.0)).collect();
        if choices.is_empty() && !steps.is_empty() {
            return Err(format!("DEADLOCK, R21: no step can run: {steps:?}"));
        }
        if !self.time.is_empty() {
            choices.push(Choice::Time);
        }
        if self.late > 0 {
            choices.push(Choice::Arrive);
        }
        if choices.is_empty() && self.has_open_call() {
            if self.store.clock().next_in().is_none() {
                return Err("HANG, R21: calls wait for nothing".to_owned());
            }
            choices.push(Choice::Time);
        }
        if !choices.is_empty() {
            let steps: Vec<_> = steps.iter().map(|it| it.0).collect();
            self.add_faults(&steps, &mut choices);
        }
        Ok(choices)
    }

    /// Returns a decision for each other answer that the server may give to a waiting
    /// step. Some commands, such as `RANDOMKEY`, have random answers.
    pub(in super::super) async fn draws(&mut self) -> Result<Vec<Choice>, String> {
        let parked = self.settle_down().await?;
        let mut choices = Vec::new();
        let Some(connections) = self.store.connections() else { return Ok(choices) };
        if self.faults_left.draws == 0 {
            return Ok(choices);
        }
        for (waiting, step) in self.waiting_steps(&parked) {
            let draws = connections.draws(step).await?.into_iter().skip(1);
            choices.extend(draws.map(|draws| Choice::Draw(waiting, draws)));
        }
        Ok(choices)
    }

    /// Returns the waiting steps with their numbers, sorted by actor.
    fn waiting_steps<'a>(
        &self,
        parked: &'a [StepRecord],
    ) -> Vec<(WaitingStep, &'a StepRecord)> {
        let of_actor = |(who, actor): (&Who, &Actor)| {
            let steps = parked.iter().filter(|step| step.actor == actor.name);
            let steps = steps.enumerate().map(|(at, step)| ((*who, at), step));
            steps.collect::<Vec<_>>()
        };
        self.actors.iter().flat_map(of_actor).collect()
    }

    /// Whether a living actor has not ended.
    fn has_open_call(&self) -> bool {
        let state = self.shared.state();
        self.actors.keys().any(|who| !state.ended.contains(who))
    }

    fn add_faults(&self, steps: &[WaitingStep], choices: &mut Vec<Choice>) {
        let Faults { deaths, late, cuts, .. } = self.faults_left;
        let held = self.store.connections().map(Connections::held).unwrap_or_default();
        for who in self.actors.keys().filter(|_| deaths > 0) {
            let has_step = steps.iter().any(|(of, _)| of == who);
            let is_held = held.iter().any(|held| held.actor == format!("{who:?}"));
            if has_step || is_held {
                choices.push(Choice::Die(*who));
            }
            if is_held {
                choices.push(Choice::Freeze(*who));
            }
        }
        if self.store.connections().is_none() {
            return;
        }
        let may_be_late = |step: &&WaitingStep| late > 0 && self.may_be_late(step.0);
        choices.extend(steps.iter().filter(may_be_late).copied().map(Choice::Late));
        for step in steps.iter().copied().filter(|_| cuts > 0) {
            choices.extend([Choice::Cut(step), Choice::Lose(step)]);
        }
    }

    /// Whether the next step of this actor may run after its death. It may not if it
    /// belongs to a push that has sent a step before: the judge could not tell the two
    /// steps apart.
    fn may_be_late(&self, who: Who) -> bool {
        let state = self.shared.state();
        let Some(at) = state.history.call_of(who) else { return true };
        let act = &state.history.overlapping[at].call.operation.act;
        let stores = matches!(
            act,
            Act::Push { .. }
                | Act::Repeat { .. }
                | Act::Add { .. }
                | Act::CreateBatch { .. }
                | Act::Tick { .. }
        );
        !(stores && state.sent.contains(&who))
    }
}
