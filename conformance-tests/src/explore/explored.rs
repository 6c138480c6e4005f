//! The result of exploring a scene.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::search::{Found, Search};

/// The result of exploring one scene.
#[derive(Debug, Clone)]
pub struct Explored {
    /// The scene's name.
    pub scene: String,
    /// How often the scene was played.
    pub runs: u64,
    /// The number of different states in which a decision was made.
    pub states: u64,
    /// The number of decisions of the longest run.
    pub longest: usize,
    /// How long the search took.
    pub took: Duration,
    /// Whether the search ended early because it reached its limit of known states.
    pub is_bounded: bool,
    /// A description of the first run that broke a rule: what is wrong, a picture of
    /// the run, and the command line that replays it. `None` if no run broke a rule.
    /// Then the scene was explored completely, unless the search was bounded.
    pub failure: Option<String>,
    /// The picture of the failed run, as SVG.
    pub picture: Option<String>,
}

impl Explored {
    /// Shrinks the failure of a search that began at `start`, and draws it.
    pub(super) fn of(search: &Search<'_>, mut found: Found, start: Instant) -> Self {
        let told = found.failure.take().map(|failure| {
            let shrunk = search.shrunk(failure);
            let (simplest, is_proven) = search.simplest(shrunk, search.most_proof_runs);
            search.tell(&simplest, is_proven)
        });
        let (failure, picture) = told.unzip();
        Self {
            scene: search.scene.name.clone(),
            runs: found.runs,
            states: found.states,
            longest: found.longest,
            took: start.elapsed(),
            is_bounded: found.is_bounded,
            failure,
            picture,
        }
    }
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scene, runs, states, longest, took, is_bounded, failure, .. } = self;
        let result = match (failure, is_bounded) {
            (Some(_), _) => "FAILED",
            (None, true) if *states == 0 => "random",
            (None, true) => "bounded by states",
            (None, false) => "complete",
        };
        let seconds = took.as_secs_f64();
        write!(
            f,
            "{scene:<36} {runs:>6} runs {states:>6} states {longest:>3} decisions \
             {seconds:>6.1} s  {result}"
        )?;
        match failure {
            Some(failure) => write!(f, "\n{failure}"),
            None => Ok(()),
        }
    }
}
