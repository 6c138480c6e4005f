//! The worker's observer in a run. It counts the events that it receives.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use relq_core::outcome::Released;
use relq_worker::observer::{Buried, Claimed, Ended, Observer, Started};

/// The events that the observer has received.
#[derive(Debug, Clone, Default)]
pub(crate) struct Events {
    pub claimed: u64,
    pub started: u64,
    /// How many jobs ended with each outcome, by the name of the outcome.
    pub ended: BTreeMap<&'static str, u64>,
    /// How many of the ended jobs have the time for which their attempt ran.
    pub timed: u64,
    pub buried: u64,
    pub released: u64,
}

/// An observer whose clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed(Arc<Mutex<Events>>);

impl Observed {
    pub(crate) fn events(&self) -> Events {
        self.0.lock().unwrap().clone()
    }
}

impl Observer for Observed {
    fn claimed(&self, event: &Claimed) {
        self.0.lock().unwrap().claimed += event.jobs as u64;
    }

    fn started(&self, _: &Started<'_>) {
        self.0.lock().unwrap().started += 1;
    }

    fn ended(&self, event: &Ended<'_>) {
        let mut events = self.0.lock().unwrap();
        *events.ended.entry(event.outcome.name()).or_default() += 1;
        events.timed += u64::from(event.ran.is_some());
    }

    fn buried(&self, _: &Buried<'_>) {
        self.0.lock().unwrap().buried += 1;
    }

    fn released(&self, event: &Released) {
        self.0.lock().unwrap().released += event.jobs;
    }
}
