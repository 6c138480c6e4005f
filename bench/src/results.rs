//! The results of a whole run of the benchmark.

use serde::Serialize;

use crate::{
    at_rest::AtRest,
    failure::{CommandResult, Failure},
    growth::Growth,
    plan::Plan,
    sample::Figures,
};

/// The figures of one run of the benchmark.
#[derive(Debug, Default)]
pub(crate) struct Results {
    pub(crate) repetitions: usize,
    pub(crate) payload: usize,
    /// The name and version of the server. `None` if no server was measured.
    pub(crate) server: Option<String>,
    pub(crate) figures: Vec<Figures>,
    pub(crate) growth: Vec<Growth>,
    pub(crate) at_rest: Vec<AtRest>,
}

impl Results {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            repetitions: plan.repetitions,
            payload: plan.payload,
            server: None,
            figures: Vec::new(),
            growth: Vec::new(),
            at_rest: Vec::new(),
        }
    }

    /// Whether every job of every run was handled exactly once.
    pub(crate) fn is_exact(&self) -> bool {
        let handled = self.figures.iter().all(|figures| figures.exact != Some(false));
        handled && self.at_rest.iter().all(|at_rest| at_rest.exact)
    }

    /// The durability settings that were measured, in their order.
    pub(crate) fn durabilities(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for figures in &self.figures {
            if !all.contains(&figures.durability.as_str()) {
                all.push(&figures.durability);
            }
        }
        all
    }

    /// The names of the measured backends, in the order in which they ran. The stores
    /// without relq are left out.
    pub(crate) fn backends(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for figures in &self.figures {
            let name = figures.backend.as_str();
            if !name.starts_with("raw") && !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// Returns the results as JSON, one object on each line: first the workloads, then
    /// the growth, then the results for idle and for dead workers.
    pub(crate) fn json_lines(&self) -> CommandResult<String> {
        let figures = self.figures.iter().map(to_json);
        let growth = self.growth.iter().map(to_json);
        let at_rest = self.at_rest.iter().map(to_json);
        figures.chain(growth).chain(at_rest).collect()
    }
}

/// Encodes a value as JSON on one line, with a newline at its end.
fn to_json(value: &impl Serialize) -> CommandResult<String> {
    match serde_json::to_string(value) {
        Ok(line) => Ok(line + "\n"),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}
