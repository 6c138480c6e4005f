//! `conformance explore`: every order of the commands of a few actors.

use std::sync::Arc;

use relq_conformance::{
    Subject, explore,
    own::{Circular, Keyspace, ProcessingList, ProcessingListShared, Stream, Zset},
};
use serde::Serialize;

use crate::{SuiteResult, backend::Backend};

/// Explore every order of the commands of a few actors
///
/// Plays each scene on a private Redis server in every order of its commands, with a
/// death of an actor before each of them. Exits with 1 when a run breaks a
/// promise, and shows a picture of that run.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The backend
    #[arg(long, value_enum)]
    backend: Backend,

    /// Only the scene of this name
    #[arg(long, value_name = "NAME")]
    scene: Option<String>,

    /// The most actors that die in one run
    #[arg(long, value_name = "N", default_value_t = 1)]
    deaths: usize,

    /// Play the scene once, with these decisions, as a failure prints them
    #[arg(long, value_name = "DECISIONS", requires = "scene")]
    replay: Option<String>,

    /// Print one JSON object
    #[arg(long, conflicts_with = "replay")]
    json: bool,
}

/// The result for a backend.
#[derive(Serialize, Default)]
struct Summary {
    backend: &'static str,
    scenes: u64,
    runs: u64,
    states: u64,
    /// The number of decisions of the longest run.
    longest: usize,
    seconds: f64,
    /// The most actors that died in one run.
    deaths: usize,
    /// Whether every order of each scene was tried.
    complete: bool,
    /// The scenes that break a promise.
    failed: Vec<String>,
    /// The scenes that need options that the backend does not support.
    unsupported: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> SuiteResult<bool> {
        let subject: Arc<dyn Subject> = match self.backend {
            Backend::Zset => Arc::new(Zset),
            Backend::Circular => Arc::new(Circular),
            Backend::ProcessingList => Arc::new(ProcessingList),
            Backend::ProcessingListShared => Arc::new(ProcessingListShared),
            Backend::Keyspace => Arc::new(Keyspace::default()),
            Backend::Stream => Arc::new(Stream),
            Backend::Sqlite => {
                return Err("explore is for backends on Redis".into());
            }
        };
        if let (Some(scene), Some(decisions)) = (&self.scene, &self.replay) {
            let played = explore::replay(&subject, scene, decisions);
            let (Ok(picture) | Err(picture)) = &played;
            println!("{picture}");
            return Ok(played.is_ok());
        }
        let mut summary = Summary {
            backend: self.backend.name(),
            deaths: self.deaths,
            ..Summary::default()
        };
        for scene in explore::scenes() {
            if self.scene.as_deref().is_none_or(|only| only == scene) {
                self.one(&subject, scene, &mut summary)?;
            }
        }
        summary.complete = summary.failed.is_empty() && summary.scenes > 0;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&summary)?);
        } else {
            let Summary { backend, scenes, runs, states, seconds, .. } = &summary;
            let result = if summary.complete { "complete" } else { "FAILED" };
            println!(
                "{backend}: {scenes} scenes, {runs} runs, {states} states in \
                 {seconds:.0} s, {result}"
            );
        }
        Ok(summary.complete)
    }

    fn one(
        &self,
        subject: &Arc<dyn Subject>,
        scene: &str,
        summary: &mut Summary,
    ) -> SuiteResult<()> {
        let Some(explored) = explore::explore(subject, scene, self.deaths)? else {
            if !self.json {
                println!("{scene:<36} unsupported");
            }
            summary.unsupported.push(scene.to_owned());
            return Ok(());
        };
        if !self.json || explored.failure.is_some() {
            eprintln!("{explored}");
        }
        summary.scenes += 1;
        summary.runs += explored.runs;
        summary.states += explored.states;
        summary.longest = summary.longest.max(explored.longest);
        summary.seconds += explored.took.as_secs_f64();
        if explored.failure.is_some() {
            summary.failed.push(explored.scene);
        }
        Ok(())
    }
}
