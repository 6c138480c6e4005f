//! The plan of faults, the record of steps, and the steps that wait for a decision.
//!
//! Usually the plan decides on a step when it arrives. After [`Ledger::park`] each step
//! waits until the suite lets it go on or injects a fault. The suite then controls the
//! order of steps and can try every interleaving.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};

use super::{
    record::{Fate, Fault, StepRecord},
    request::Request,
};

/// The name of an actor and the number of one of its steps.
type StepOfActor = (String, u32);

/// The fault that fires at a step. `None` if the step passes.
type PlannedFault = Option<Fault>;

#[derive(Debug)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
    parked: watch::Sender<usize>,
    /// How many commands of [`Fault::Meanwhile`] were decided on and have no reply yet.
    unfinished: watch::Sender<usize>,
}

/// Counts as an unfinished command of [`Fault::Meanwhile`] until it is dropped.
#[derive(Debug)]
pub(super) struct Unfinished<'a>(&'a Ledger);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        self.0.unfinished.send_modify(|unfinished| *unfinished -= 1);
    }
}

#[derive(Debug, Default)]
struct Entries {
    plan: BTreeMap<StepOfActor, Fault>,
    steps: Vec<StepRecord>,
    troubles: Vec<String>,
    is_parking: bool,
    parked: BTreeMap<StepOfActor, Parked>,
}

#[derive(Debug)]
struct Parked {
    /// The index of the step in the record of steps.
    at: usize,
    can_wait: bool,
    request: Request,
    decide: oneshot::Sender<PlannedFault>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            entries: Mutex::default(),
            parked: watch::Sender::new(0),
            unfinished: watch::Sender::new(0),
        }
    }

    pub(crate) fn plan(&self, actor: &str, step: u32, fault: Fault) {
        self.entries().plan.insert((actor.to_owned(), step), fault);
    }

    pub(crate) fn unfired(&self) -> Vec<(String, u32, Fault)> {
        let entries = self.entries();
        let entry = |((actor, step), fault): (&StepOfActor, &Fault)| {
            (actor.clone(), *step, fault.clone())
        };
        entries.plan.iter().map(entry).collect()
    }

    pub(crate) fn steps(&self) -> Vec<StepRecord> {
        self.entries().steps.clone()
    }

    pub(crate) fn step_count(&self) -> usize {
        self.entries().steps.len()
    }

    pub(crate) fn steps_by(&self, actor: &str) -> Vec<StepRecord> {
        let entries = self.entries();
        entries.steps.iter().filter(|step| step.actor == actor).cloned().collect()
    }

    pub(crate) fn trouble(&self, what: &str) {
        self.entries().troubles.push(what.to_owned());
    }

    pub(crate) fn troubles(&self) -> Vec<String> {
        self.entries().troubles.clone()
    }

    /// Adds a step that needs no decision to the record.
    pub(crate) fn write(&self, step: StepRecord) {
        self.entries().steps.push(step);
    }

    /// Adds a step to the record. Returns the fault for it, at once or when the suite
    /// has decided.
    pub(crate) async fn arrives(
        &self,
        step: StepRecord,
        request: &Request,
        can_wait: bool,
    ) -> PlannedFault {
        let at_step = (step.actor.clone(), step.step);
        let decision = {
            let mut entries = self.entries();
            entries.steps.push(step);
            let at = entries.steps.len() - 1;
            if !entries.is_parking {
                return self.begun(entries.inject_as_planned(&at_step, at, can_wait));
            }
            let (decide, decision) = oneshot::channel();
            let request = request.clone();
            let parked = Parked { at, can_wait, request, decide };
            entries.parked.insert(at_step.clone(), parked);
            self.parked.send_replace(entries.parked.len());
            decision
        };
        let _unpark = UnparkOnDrop { ledger: self, at_step };
        decision.await.unwrap_or(None)
    }

    /// Counts a fault's command as unfinished while the plan is locked. So
    /// [`heal`](Self::heal) cannot miss a command that was decided on and not yet sent.
    fn begun(&self, planned: PlannedFault) -> PlannedFault {
        if let Some(Fault::Meanwhile(_)) = &planned {
            self.unfinished.send_modify(|unfinished| *unfinished += 1);
        }
        planned
    }

    /// The guard of a fault's command, which the caller drops once the server has run
    /// the command. `None` if the fault has no command.
    pub(super) fn unfinished(&self, fault: &Fault) -> Option<Unfinished<'_>> {
        matches!(fault, Fault::Meanwhile(_)).then(|| Unfinished(self))
    }

    /// Completes once the server has run the commands of all faults decided on so far.
    pub(crate) async fn finished(&self) {
        let mut unfinished = self.unfinished.subscribe();
        // The channel stays open, because its sender lives as long as the ledger.
        let _ = unfinished.wait_for(|unfinished| *unfinished == 0).await;
    }

    pub(crate) fn is_parking(&self) -> bool {
        self.entries().is_parking
    }

    /// From now on every step waits for [`Ledger::decide`].
    pub(crate) fn park(&self) {
        self.entries().is_parking = true;
    }

    pub(crate) async fn parked(&self, count: usize) -> Vec<StepRecord> {
        let mut parked = self.parked.subscribe();
        // The channel stays open, because its sender lives as long as the ledger.
        let _ = parked.wait_for(|parked| *parked >= count).await;
        let entries = self.entries();
        entries.parked.values().map(|parked| entries.steps[parked.at].clone()).collect()
    }

    /// The request of a parked step. `None` if the step is not parked.
    pub(crate) fn request(&self, actor: &str, step: u32) -> Option<Request> {
        let entries = self.entries();
        Some(entries.parked.get(&(actor.to_owned(), step))?.request.clone())
    }

    /// Decides on a parked step: it passes, or the fault is injected. Returns whether
    /// the step was parked.
    pub(crate) fn decide(&self, actor: &str, step: u32, fault: PlannedFault) -> bool {
        let at_step = (actor.to_owned(), step);
        let mut entries = self.entries();
        let Some(parked) = entries.parked.remove(&at_step) else { return false };
        self.parked.send_replace(entries.parked.len());
        let planned = match fault {
            Some(fault) => {
                entries.plan.insert(at_step.clone(), fault);
                self.begun(entries.inject_as_planned(
                    &at_step,
                    parked.at,
                    parked.can_wait,
                ))
            }
            None => None,
        };
        // The step does not exist any more if its connection has ended meanwhile.
        match parked.decide.send(planned) {
            Ok(()) => true,
            Err(planned) => {
                drop(planned.and_then(|fault| self.unfinished(&fault)));
                false
            }
        }
    }

    /// Removes all planned faults and lets all parked steps go on.
    pub(crate) fn heal(&self) {
        let mut entries = self.entries();
        entries.plan.clear();
        entries.is_parking = false;
        entries.parked.clear();
        self.parked.send_replace(0);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    /// Takes the fault that is planned for a step. A time-out is taken only at a
    /// command that the server can hold, and stays planned at any other.
    fn inject_as_planned(
        &mut self,
        at_step: &StepOfActor,
        at: usize,
        can_wait: bool,
    ) -> PlannedFault {
        if !can_wait && self.plan.get(at_step) == Some(&Fault::TimeOut) {
            return None;
        }
        let fault = self.plan.remove(at_step)?;
        self.steps[at].fate = Fate::Injected(fault.clone());
        Some(fault)
    }
}

/// Removes a parked step when it is dropped, because the step's connection has ended.
struct UnparkOnDrop<'a> {
    ledger: &'a Ledger,
    at_step: StepOfActor,
}

impl Drop for UnparkOnDrop<'_> {
    fn drop(&mut self) {
        let mut entries = self.ledger.entries();
        if entries.parked.remove(&self.at_step).is_some() {
            self.ledger.parked.send_replace(entries.parked.len());
        }
    }
}
