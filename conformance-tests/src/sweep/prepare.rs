//! Prepares a scenario: makes the calls of its setup, and lets the reference model
//! derive what the victim's calls promise.

use std::collections::{BTreeMap, BTreeSet};

use relq_core::{
    WorkerId,
    environment::{Clock as _, Timestamp},
    outcome::Pushed,
    schedule::Ticked,
};

use super::{
    actors::{PAST_ALL, Survivors},
    promise::{End, Promise, StoreContents},
    scenarios::{Calls, Scenario},
    victim::{Part, Ran},
    waiting::PUSHED,
};
use crate::spec::{
    caller::{Caller, Pushes},
    drained::FoundAt,
    operation::{Act, Operation, Who},
    recorded::{Judge, RecordedCall, Reply},
    reference::CheckResult,
};

/// The store before the victim's calls, as far as the victim and the checks need to know
/// it.
pub(crate) struct Scene {
    pub(crate) part: Part,
    pub(crate) promise: Promise,
}

/// The actors that make the calls of a setup on the queue of the healthy actor, and the
/// reference model that judges these calls.
struct Setup<'a> {
    actors: &'a Survivors,
    callers: BTreeMap<Who, Caller>,
    pushes: Pushes,
    judge: Judge,
    scene_began: Timestamp,
}

impl Scenario {
    /// Brings the store into the state before the victim's calls. The calls of worker
    /// `a` in the setup are made under the victim's worker id.
    ///
    /// # Errors
    /// When the backend breaks a rule in the setup, in which no fault fires.
    pub(crate) async fn prepare(
        &self,
        actors: &Survivors,
        victim: &WorkerId,
    ) -> Result<Scene, String> {
        let queue = || actors.healthy.queue.clone();
        let scene_began = actors.clock.now();
        let mut own = Caller::of_worker(victim.clone(), queue());
        own.scene_began = scene_began;
        let mut setup = Setup {
            actors,
            scene_began,
            callers: [(Who::WorkerA, own)].into(),
            pushes: Pushes::default(),
            judge: Judge::new(actors.healthy.capabilities()),
        };
        for (operation, payloads) in self.setup() {
            let at = |wrong| format!("in the setup, `{operation}`: {wrong}");
            setup.call(&operation, payloads).await.map_err(at)?;
        }
        let promise = self.promise(&mut setup.judge).await?;
        let receipts = setup.callers.remove(&Who::WorkerA).map(|own| own.receipts);
        let part = Part {
            worker: victim.clone(),
            receipts: receipts.unwrap_or_default(),
            jobs: setup.pushes.ids.into_iter().flatten().collect(),
            scene_began,
            ran: Ran::default(),
        };
        Ok(Scene { part, promise })
    }

    /// The contents that the store must have after the victim's calls. If replies are lost,
    /// the reference model knows what they may have changed.
    async fn promise(&self, judge: &mut Judge) -> Result<Promise, String> {
        let before = judge.drained(PAST_ALL);
        let (schedules, told) = (judge.schedules(), judge.told(PAST_ALL));
        let (mut undone, mut done) = <(StoreContents, StoreContents)>::default();
        if let Calls::Lines(_) = self.calls {
            for (operation, payloads) in self.operations() {
                let call = RecordedCall::alone(operation, payloads, Vec::new());
                judge.call(&RecordedCall { is_lost: true, ..call }).await?;
            }
        }
        let nowhere = BTreeSet::from([FoundAt::Nowhere]);
        for (at, (payload, after)) in judge.drained(PAST_ALL).into_iter().enumerate() {
            let before = before.get(at).map_or(&nowhere, |(_, found)| found);
            let unsure =
                || format!("the model does not know where {payload:?} is found");
            let if_undone = only(before).ok_or_else(unsure)?;
            let changed: BTreeSet<_> = after.difference(before).copied().collect();
            let changed = if changed.is_empty() { before } else { &changed };
            let if_done = only(changed).ok_or_else(unsure)?;
            undone.add_found(payload.clone(), if_undone);
            done.add_found(payload, if_done);
        }
        for (before, after) in changes(&schedules, judge.schedules())? {
            undone.add_schedule(before.as_ref());
            done.add_schedule(after.as_ref());
        }
        for (before, after) in changes(&told, judge.told(PAST_ALL))? {
            undone.add_told(before.as_ref());
            done.add_told(after.as_ref());
        }
        if let Calls::WaitingClaims { .. } = self.calls {
            undone.add(PUSHED.into(), End::Delivered);
            done.add(PUSHED.into(), End::Delivered);
        }
        let known = judge.known_ids().into_iter().collect();
        Ok(Promise { undone, done, known, atomicity: self.atomicity })
    }
}

impl Setup<'_> {
    async fn call(&mut self, operation: &Operation, payloads: usize) -> CheckResult {
        let replies = match operation.time() {
            Some(time) => {
                self.actors.clock.advance(time);
                Vec::new()
            }
            None => {
                let queue = || self.actors.healthy.queue.clone();
                let who = operation.who;
                let caller = self.callers.entry(who);
                let caller = caller.or_insert_with(|| Caller::new(who, queue()));
                caller.scene_began = self.scene_began;
                caller.act(operation, payloads, &mut self.pushes).await
            }
        };
        self.pushes.remember(&replies);
        let is_done = is_complete(operation, &replies);
        let call = RecordedCall::alone(operation.clone(), payloads, replies);
        self.judge.call(&call).await?;
        is_done.then_some(()).ok_or_else(|| "too few jobs".to_owned())
    }
}

/// A text of the store, or `None` for nothing.
type Text = Option<String>;

/// Pairs each text before the victim's calls with that after them. Before them, only one is
/// possible; after them, it may also be as before, if they took no effect.
fn changes(
    before: &[Vec<Text>],
    after: Vec<Vec<Text>>,
) -> Result<Vec<(Text, Text)>, String> {
    let pair = |(at, after): (usize, Vec<Text>)| {
        let before = before.get(at).cloned().unwrap_or_else(|| vec![None]);
        let [undone] = &before[..] else {
            return Err(format!("the model does not know which of {before:?} is so"));
        };
        let changed = after.into_iter().find(|it| it != undone);
        Ok((undone.clone(), changed.unwrap_or_else(|| undone.clone())))
    };
    after.into_iter().enumerate().map(pair).collect()
}

/// Returns the element of a set that has exactly one.
fn only(found: &BTreeSet<FoundAt>) -> Option<FoundAt> {
    found.first().filter(|_| found.len() == 1).copied()
}

/// Whether each pushed job was stored, and a claim got as many jobs as it asked for.
fn is_complete(operation: &Operation, replies: &[Reply]) -> bool {
    replies.iter().all(|reply| match (reply, &operation.act) {
        (Reply::Claimed(Ok(taken)), Act::Claim { max, .. }) => {
            taken.len() == usize::from(*max)
        }
        (Reply::Pushed(Ok(pushed)), _) => {
            pushed.iter().all(|one| matches!(one, Pushed::Stored(_)))
        }
        (Reply::Ticked(Ok(ticked)), _) => {
            matches!(ticked, Ticked::Pushed(Pushed::Stored(_)))
        }
        _ => true,
    })
}
