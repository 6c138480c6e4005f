//! Stops the threads of embedded actors before each of their steps, until a decision.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    panic::resume_unwind,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

use tokio::sync::watch;

use super::transactions::{Bound, Transactions};
use crate::proxy::{Fate, StepRecord};

/// The waiting steps of all actors of a run.
pub(super) struct Parking {
    state: Mutex<State>,
    decided: Condvar,
    /// How many steps wait.
    waiting: watch::Sender<usize>,
    /// The threads that have ended.
    ended: watch::Sender<Vec<ThreadId>>,
    transactions: Transactions,
}

#[derive(Default)]
struct State {
    phase: Phase,
    actors: BTreeMap<String, Actor>,
    /// Counts the commits that may have changed the data.
    commits: u64,
    /// The reason why the run proves nothing, if there is one.
    wrong: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Passing,
    Parking,
    /// The run is over: each thread ends when it reaches a step.
    Over,
}

#[derive(Default)]
struct Actor {
    steps: u32,
    waiting: Option<Waiting>,
    /// How the actor's open transaction began. `None` if it has none.
    transaction: Option<Bound>,
    seen: DefaultHasher,
    /// The digest of the data at the beginning of the open transaction.
    snapshot: u64,
    is_dead: bool,
    /// The label of the running step, if the search ran it at once because it is
    /// independent.
    independent: Option<String>,
}

struct Waiting {
    record: StepRecord,
    bound: Option<Bound>,
    thread: ThreadId,
}

impl Parking {
    pub(super) fn new(transactions: Transactions) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            decided: Condvar::new(),
            waiting: watch::Sender::new(0),
            ended: watch::Sender::new(Vec::new()),
            transactions,
        })
    }

    /// Makes each step wait for a decision from now on.
    pub(super) fn park(&self) {
        let mut state = self.state();
        state.phase = Phase::Parking;
        for actor in state.actors.values_mut() {
            actor.seen = DefaultHasher::new();
        }
    }

    /// Lets all steps run from now on.
    pub(super) fn heal(&self) {
        self.enter(Phase::Passing);
    }

    /// Makes each thread end at its next step.
    pub(super) fn end(&self) {
        self.enter(Phase::Over);
    }

    fn enter(&self, phase: Phase) {
        let mut state = self.state();
        state.phase = phase;
        state.actors.values_mut().for_each(|actor| actor.waiting = None);
        drop(state);
        self.waiting.send_replace(0);
        self.decided.notify_all();
    }

    /// Waits on the actor's thread before a step, until the step may run. If the actor
    /// is dead by then, ends the thread, which drops its connection.
    pub(super) fn before(self: &Arc<Self>, actor: &str, text: &str, label: String) {
        ThreadEnd::reports_to(self);
        let step = self.arrives(actor, text, label);
        let waits = |state: &mut State| {
            let waiting = state.actors.get(actor).and_then(|one| one.waiting.as_ref());
            waiting.is_some_and(|waiting| waiting.record.step == step)
        };
        let state = self.decided.wait_while(self.state(), waits);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let is_dead = state.actors.get(actor).is_some_and(|one| one.is_dead);
        let is_over = state.phase == Phase::Over;
        drop(state);
        if is_dead || is_over {
            // End without a message, as a killed process does.
            resume_unwind(Box::new("the actor is dead"));
        }
    }

    /// Records that an actor has reached a step. Returns the number of the step.
    fn arrives(&self, actor: &str, text: &str, label: String) -> u32 {
        let mut state = self.state();
        let parks = state.phase == Phase::Parking;
        let one = state.actors.entry(actor.to_owned()).or_default();
        one.steps += 1;
        one.independent = None;
        let step = one.steps;
        if parks && !one.is_dead {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            let arguments = hasher.finish();
            let record = StepRecord {
                actor: actor.to_owned(),
                connection: 1,
                step,
                command: label,
                script: None,
                contents: Vec::new(),
                arguments: Some(arguments),
                fate: Fate::Passed,
            };
            let bound = (self.transactions.bound)(text);
            let thread = thread::current().id();
            one.waiting = Some(Waiting { record, bound, thread });
            self.waiting.send_replace(state.waiting());
        }
        step
    }

    /// Records the result of a step. Called on the actor's thread after the step.
    pub(super) fn after(&self, actor: &str, text: &str) {
        let mut state = self.state();
        let Some(one) = state.actors.get_mut(actor) else { return };
        (text, (self.transactions.result)()).hash(&mut one.seen);
        let was_open = one.transaction;
        match (self.transactions.bound)(text) {
            Some(Bound::Ends) => one.transaction = None,
            Some(begins) => one.transaction = Some(begins),
            None => {}
        }
        // A step outside of a transaction is a transaction of its own.
        let may_change = was_open != Some(Bound::BeginsToRead);
        if one.transaction.is_none() && may_change {
            state.commits += 1;
        }
    }

    /// Waits until at least `count` steps wait, and returns all waiting steps.
    pub(super) async fn parked(&self, count: usize) -> Vec<StepRecord> {
        let mut waiting = self.waiting.subscribe();
        // The sender lives as long as this value.
        let _ = waiting.wait_for(|waiting| *waiting >= count).await;
        let state = self.state();
        let waiting = state.actors.values().filter_map(|one| one.waiting.as_ref());
        waiting.map(|waiting| waiting.record.clone()).collect()
    }

    /// Whether the step can run: no other actor has a transaction that excludes it.
    pub(super) fn can_run(&self, step: &StepRecord) -> bool {
        let state = self.state();
        let begins = state.waiting_bound(&step.actor) == Some(Bound::BeginsToWrite);
        let mut others = state.actors.iter().filter(|(name, _)| **name != step.actor);
        !begins || others.all(|(_, it)| it.transaction != Some(Bound::BeginsToWrite))
    }

    /// Whether the step is inside of a transaction, and neither begins nor ends it.
    pub(super) fn is_inside(&self, step: &StepRecord) -> bool {
        self.state().actors.get(&step.actor).is_some_and(Actor::is_inside)
    }

    /// Lets a waiting step run. `data` is the digest of the data that it can see.
    pub(super) fn pass(&self, step: &StepRecord, data: u64) {
        let mut state = self.state();
        let Some(one) = state.actors.get_mut(&step.actor) else { return };
        let is_inside = one.is_inside();
        if !is_inside {
            one.snapshot = data;
        }
        one.waiting = None;
        one.independent = is_inside.then(|| step.command.clone());
        self.waiting.send_replace(state.waiting());
        drop(state);
        self.decided.notify_all();
    }

    /// Ends the actor of a waiting step. Completes when its thread has ended, which
    /// closes its connection.
    pub(super) async fn kill(&self, step: &StepRecord) {
        let mut ended = self.ended.subscribe();
        let Some(thread) = self.give_up(&step.actor) else { return };
        // The sender lives as long as this value.
        let _ = ended.wait_for(|ended| ended.contains(&thread)).await;
    }

    /// Marks the actor as dead, so that its thread ends. Returns the thread that waits
    /// at a step. `None` if none waits.
    fn give_up(&self, actor: &str) -> Option<ThreadId> {
        let mut state = self.state();
        let one = state.actors.get_mut(actor)?;
        let Waiting { thread, .. } = one.waiting.take()?;
        (one.is_dead, one.transaction) = (true, None);
        // Forget what the dead actor has seen, because it decides nothing any more.
        one.seen = DefaultHasher::new();
        self.waiting.send_replace(state.waiting());
        drop(state);
        self.decided.notify_all();
        Some(thread)
    }

    /// Records that the actor has read the clock. An independent step must not read it.
    pub(super) fn reads_clock(&self, actor: &str, reading: impl std::hash::Hash) {
        let mut state = self.state();
        let one = state.actors.entry(actor.to_owned()).or_default();
        reading.hash(&mut one.seen);
        if let Some(step) = &one.independent {
            let wrong = format!(
                "INDEPENDENT: {actor} reads the clock after {step}, inside of a \
                 transaction, and the search did not try it at other times; read the \
                 clock at the begin"
            );
            state.wrong = Some(wrong);
        }
    }

    /// Returns the reason why the run proves nothing as an error, if there is one.
    pub(super) fn check(&self) -> Result<(), String> {
        self.state().wrong.clone().map_or(Ok(()), Err)
    }

    pub(super) fn seen(&self, actor: &str) -> u64 {
        self.state().actors.get(actor).map_or(0, Actor::seen)
    }

    pub(super) fn commits(&self) -> u64 {
        self.state().commits
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Actor {
    /// Whether the waiting step is inside of a transaction.
    fn is_inside(&self) -> bool {
        let bound = self.waiting.as_ref().map(|waiting| waiting.bound);
        self.transaction.is_some() && bound == Some(None)
    }

    /// Returns a digest of what the actor has seen: its steps with their results, its
    /// readings of the clock, and the data that the rest of its transaction can read.
    fn seen(&self) -> u64 {
        let mut seen = self.seen.clone();
        self.is_inside().then_some(self.snapshot).hash(&mut seen);
        seen.finish()
    }
}

impl State {
    fn waiting(&self) -> usize {
        self.actors.values().filter(|one| one.waiting.is_some()).count()
    }

    fn waiting_bound(&self, actor: &str) -> Option<Bound> {
        self.actors.get(actor)?.waiting.as_ref()?.bound
    }
}

thread_local! {
    static THREAD_END: RefCell<Option<ThreadEnd>> = const { RefCell::new(None) };
}

/// Reports the end of its thread when it is dropped, which happens after everything
/// else that the thread owned was dropped.
struct ThreadEnd {
    thread: ThreadId,
    parking: Arc<Parking>,
}

impl ThreadEnd {
    fn reports_to(parking: &Arc<Parking>) {
        let report =
            || Self { thread: thread::current().id(), parking: Arc::clone(parking) };
        THREAD_END.with_borrow_mut(|end| {
            end.get_or_insert_with(report);
        });
    }
}

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        self.parking.ended.send_modify(|ended| ended.push(self.thread));
    }
}
