//! The plan, the record, and who waits at the gate for a decision.
//!
//! Without parking, what becomes of a step is decided when it comes: by the plan. With
//! parking it waits, and the suite decides in which order steps go on and what strikes
//! them, so that every interleaving can be tried.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{oneshot, watch};

use super::record::{Fate, Fault, StepRecord};

/// Which step of which actor.
type Place = (String, u32);

/// What becomes of a step: the fault that fires at it, if one does.
type Verdict = Option<Fault>;

#[derive(Debug)]
pub(crate) struct Ledger {
    book: Mutex<Book>,
    parked: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Book {
    plan: BTreeMap<Place, Fault>,
    steps: Vec<StepRecord>,
    troubles: Vec<String>,
    is_parking: bool,
    parked: BTreeMap<Place, Parked>,
}

#[derive(Debug)]
struct Parked {
    /// Where in the record it is.
    at: usize,
    can_wait: bool,
    decide: oneshot::Sender<Verdict>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self { book: Mutex::default(), parked: watch::Sender::new(0) }
    }

    pub(crate) fn plan(&self, actor: &str, step: u32, fault: Fault) {
        self.book().plan.insert((actor.to_owned(), step), fault);
    }

    pub(crate) fn unfired(&self) -> Vec<(String, u32, Fault)> {
        let book = self.book();
        let entry = |((actor, step), fault): (&Place, &Fault)| {
            (actor.clone(), *step, fault.clone())
        };
        book.plan.iter().map(entry).collect()
    }

    pub(crate) fn steps(&self) -> Vec<StepRecord> {
        self.book().steps.clone()
    }

    pub(crate) fn step_count(&self) -> usize {
        self.book().steps.len()
    }

    pub(crate) fn trouble(&self, what: &str) {
        self.book().troubles.push(what.to_owned());
    }

    pub(crate) fn troubles(&self) -> Vec<String> {
        self.book().troubles.clone()
    }

    /// Writes down a step that nobody decides on.
    pub(crate) fn write(&self, step: StepRecord) {
        self.book().steps.push(step);
    }

    /// Writes a step down and answers what becomes of it, at once or when the suite
    /// has decided.
    pub(crate) async fn arrives(&self, step: StepRecord, can_wait: bool) -> Verdict {
        let place = (step.actor.clone(), step.step);
        let decision = {
            let mut book = self.book();
            book.steps.push(step);
            let at = book.steps.len() - 1;
            if !book.is_parking {
                return book.strike_as_planned(&place, at, can_wait);
            }
            let (decide, decision) = oneshot::channel();
            book.parked.insert(place.clone(), Parked { at, can_wait, decide });
            self.parked.send_replace(book.parked.len());
            decision
        };
        let _leaves = Leaves { ledger: self, place };
        decision.await.unwrap_or(None)
    }

    pub(crate) fn is_parking(&self) -> bool {
        self.book().is_parking
    }

    /// From now on every step waits for [`Ledger::decide`].
    pub(crate) fn park(&self) {
        self.book().is_parking = true;
    }

    pub(crate) async fn parked(&self, count: usize) -> Vec<StepRecord> {
        let mut parked = self.parked.subscribe();
        // The sender lives as long as the ledger.
        let _ = parked.wait_for(|parked| *parked >= count).await;
        let book = self.book();
        book.parked.values().map(|parked| book.steps[parked.at].clone()).collect()
    }

    /// Lets a parked step go on; answers whether it was there.
    pub(crate) fn decide(&self, actor: &str, step: u32, fault: Verdict) -> bool {
        let place = (actor.to_owned(), step);
        let mut book = self.book();
        let Some(parked) = book.parked.remove(&place) else { return false };
        self.parked.send_replace(book.parked.len());
        let verdict = match fault {
            Some(fault) => {
                book.plan.insert(place.clone(), fault);
                book.strike_as_planned(&place, parked.at, parked.can_wait)
            }
            None => None,
        };
        // A connection that ended meanwhile needs no decision.
        parked.decide.send(verdict).is_ok()
    }

    /// Forgets the plan and lets all go that are parked.
    pub(crate) fn heal(&self) {
        let mut book = self.book();
        book.plan.clear();
        book.is_parking = false;
        book.parked.clear();
        self.parked.send_replace(0);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    /// A time-out cannot strike what does not wait, and stays planned.
    fn strike_as_planned(
        &mut self,
        place: &Place,
        at: usize,
        can_wait: bool,
    ) -> Verdict {
        if !can_wait && self.plan.get(place) == Some(&Fault::TimeOut) {
            return None;
        }
        let fault = self.plan.remove(place)?;
        self.steps[at].fate = Fate::Struck(fault.clone());
        Some(fault)
    }
}

/// Takes a step off the parked ones when its connection ends.
struct Leaves<'a> {
    ledger: &'a Ledger,
    place: Place,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        let mut book = self.ledger.book();
        if book.parked.remove(&self.place).is_some() {
            self.ledger.parked.send_replace(book.parked.len());
        }
    }
}
