//! All that was measured.

use serde::Serialize;

use super::{at_rest::AtRest, growth::Growth, plan::Plan, sample::Figures};
use crate::failure::{Failure, Outcome};

/// The figures of one run of the benchmark.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) repetitions: usize,
    pub(super) payload: usize,
    /// The name and version of the server, if there was one.
    pub(super) server: Option<String>,
    pub(super) figures: Vec<Figures>,
    pub(super) growth: Vec<Growth>,
    pub(super) at_rest: Vec<AtRest>,
}

impl Results {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            repetitions: plan.repetitions,
            payload: plan.payload,
            server: None,
            figures: Vec::new(),
            growth: Vec::new(),
            at_rest: Vec::new(),
        }
    }

    /// Whether every job of every run was handled once.
    pub(super) fn is_exact(&self) -> bool {
        let handled = self.figures.iter().all(|figures| figures.exact != Some(false));
        handled && self.at_rest.iter().all(|at_rest| at_rest.exact)
    }

    /// The durability settings that were measured, in their order.
    pub(super) fn durabilities(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for figures in &self.figures {
            if !all.contains(&figures.durability.as_str()) {
                all.push(&figures.durability);
            }
        }
        all
    }

    /// The backends, in the order in which they ran; those of raw stores are left out.
    pub(super) fn backends(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for figures in &self.figures {
            let name = figures.backend.as_str();
            if !name.starts_with("raw") && !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// One object a line: workloads, then growth, then what is at rest.
    pub(super) fn json_lines(&self) -> Outcome<String> {
        let figures = self.figures.iter().map(to_json);
        let growth = self.growth.iter().map(to_json);
        let at_rest = self.at_rest.iter().map(to_json);
        figures.chain(growth).chain(at_rest).collect()
    }
}

/// The value on a line of its own.
fn to_json(value: &impl Serialize) -> Outcome<String> {
    match serde_json::to_string(value) {
        Ok(line) => Ok(line + "\n"),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}
