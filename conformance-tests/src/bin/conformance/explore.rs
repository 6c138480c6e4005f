//! `conformance explore`: every order of the commands of a few actors.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use relq_conformance::{
    Subject,
    explore::{self, Explored, Faults, Limits},
};
use serde::Serialize;

use crate::{SuiteResult, backend::Backend};

/// Explore every order of the commands of a few actors
///
/// Plays each scene on a private Redis server, or on SQLite in a temporary folder, in
/// every order of its commands or statements, with at most the given number of faults
/// in a run. Exits with 1 when a run breaks a promise, and shows a picture of that run.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The backend to explore
    #[arg(long, value_enum)]
    backend: Backend,

    /// Explore only one scene: the name of a scene, or its text, such as `p push j | a
    /// claim 1 l0 | r recover 5`
    #[arg(long, value_name = "SCENE")]
    scene: Option<String>,

    /// How many actors die in one run at most
    #[arg(long, value_name = "N", default_value_t = 1)]
    deaths: usize,

    /// How many more actors die in one run at most, whose last command runs later
    #[arg(long, value_name = "N", default_value_t = 0)]
    late: usize,

    /// How many connections of living actors break in one run at most
    #[arg(long, value_name = "N", default_value_t = 0)]
    cuts: usize,

    /// How many commands in one run at most get another random answer of the server:
    /// other keys of RANDOMKEY, other members, another order of SCAN
    #[arg(long, value_name = "N", default_value_t = 0)]
    draws: usize,

    /// Stop the search of a scene when it knows this many states; such a scene is not
    /// complete
    #[arg(long, value_name = "N", default_value_t = explore::DEFAULT_STATES)]
    states: usize,

    /// How many more runs may be made to prove that the run of a failure is the simplest
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    proof: u64,

    /// How many scenes are explored at the same time [default: the number of
    /// processors]
    #[arg(long, value_name = "N")]
    parallel: Option<NonZeroUsize>,

    /// Save the progress of each search in this folder, and continue from what is saved
    /// there
    #[arg(long, value_name = "FOLDER", conflicts_with = "random")]
    resume: Option<PathBuf>,

    /// Play the large scenes in random orders, which depend only on this seed
    #[arg(long, value_name = "SEED", requires = "runs")]
    random: Option<u64>,

    /// How many random runs each scene gets
    #[arg(long, value_name = "N", requires = "random")]
    runs: Option<u64>,

    /// Play the scene once, with the decisions that a failure has printed
    #[arg(long, value_name = "DECISIONS", requires = "scene")]
    replay: Option<String>,

    /// Write the picture of the replayed run, or of the first failure, to this SVG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long, conflicts_with = "replay")]
    json: bool,
}

/// The results of all scenes on one backend.
#[derive(Serialize, Default)]
struct Summary {
    backend: &'static str,
    scenes: u64,
    runs: u64,
    states: u64,
    /// The number of decisions of the longest run.
    longest: usize,
    seconds: f64,
    /// The most faults in one run.
    deaths: usize,
    late: usize,
    cuts: usize,
    draws: usize,
    /// The seed of the random runs. `None` if every order was tried.
    seed: Option<u64>,
    /// Whether every order of each scene was tried.
    complete: bool,
    /// The scenes in which some orders were not tried.
    bounded: Vec<String>,
    /// The scenes that break a promise.
    failed: Vec<String>,
    /// The scenes that need options that the backend does not support.
    unsupported: Vec<String>,
}

impl Args {
    pub(crate) fn run(self) -> SuiteResult<bool> {
        let subject = self.backend.subject();
        if let (Some(scene), Some(decisions)) = (&self.scene, &self.replay) {
            return self.replay(&subject, scene, decisions);
        }
        if let Some(folder) = &self.resume {
            std::fs::create_dir_all(folder)?;
        }
        let start = Instant::now();
        let scenes = self.scenes();
        let explored = self.explore_all(&subject, &scenes)?;
        let mut summary = self.summary(&scenes, explored);
        summary.seconds = start.elapsed().as_secs_f64();
        if self.json {
            println!("{}", serde_json::to_string_pretty(&summary)?);
        } else {
            println!("{summary}");
        }
        Ok(summary.failed.is_empty() && summary.scenes > 0)
    }

    fn replay(
        &self,
        subject: &Arc<dyn Subject>,
        scene: &str,
        decisions: &str,
    ) -> SuiteResult<bool> {
        let played = explore::replay(subject, scene, decisions);
        let (Ok(picture) | Err(picture)) = &played;
        println!("{picture}");
        if let Some(file) = &self.picture {
            write(file, &explore::picture(subject, scene, decisions)?)?;
        }
        Ok(played.is_ok())
    }

    fn scenes(&self) -> Vec<String> {
        match (&self.scene, self.random) {
            (Some(scene), _) => vec![scene.clone()],
            (None, None) => explore::scenes().map(str::to_owned).collect(),
            (None, Some(_)) => explore::large_scenes().map(str::to_owned).collect(),
        }
    }

    /// Explores the scenes, some at the same time. Returns their results in the order of
    /// the scenes; `None` for a scene that the backend does not support.
    fn explore_all(
        &self,
        subject: &Arc<dyn Subject>,
        scenes: &[String],
    ) -> SuiteResult<Vec<Option<Explored>>> {
        let next = AtomicUsize::new(0);
        let results = Mutex::new(vec![None; scenes.len()]);
        let worker = || {
            while let Some((at, scene)) = {
                let at = next.fetch_add(1, Ordering::Relaxed);
                scenes.get(at).map(|scene| (at, scene))
            } {
                let explored = self.explore_one(subject, scene);
                self.show(scene, &explored);
                let mut all = results.lock().unwrap_or_else(PoisonError::into_inner);
                all[at] = Some(explored);
            }
        };
        let parallel = self.parallel.or(thread::available_parallelism().ok());
        let parallel = parallel.map_or(1, NonZeroUsize::get).min(scenes.len());
        thread::scope(|scope| {
            for _ in 0..parallel {
                scope.spawn(worker);
            }
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let results = results.into_iter().flatten().collect::<Result<Vec<_>, String>>();
        results.map_err(Into::into)
    }

    fn explore_one(
        &self,
        subject: &Arc<dyn Subject>,
        scene: &str,
    ) -> Result<Option<Explored>, String> {
        if let (Some(seed), Some(runs)) = (self.random, self.runs) {
            return explore::explore_random(
                subject,
                scene,
                self.faults(),
                (seed, runs),
            );
        }
        let mut limits = Limits::of(self.faults());
        limits.states = self.states;
        limits.proof_runs = self.proof;
        limits.resume = self.resume.as_ref().map(|folder| {
            folder.join(format!("{}-{}", self.backend.name(), file_name(scene)))
        });
        explore::explore_within(subject, scene, &limits)
    }

    fn faults(&self) -> Faults {
        Faults {
            deaths: self.deaths,
            late: self.late,
            cuts: self.cuts,
            draws: self.draws,
        }
    }

    fn show(&self, scene: &str, explored: &Result<Option<Explored>, String>) {
        match explored {
            Ok(Some(explored)) if !self.json || explored.failure.is_some() => {
                eprintln!("{explored}");
            }
            Ok(None) if !self.json => eprintln!("{scene:<36} unsupported"),
            _ => {}
        }
        if let (Some(file), Ok(Some(Explored { picture: Some(picture), .. }))) =
            (&self.picture, explored)
            && let Err(error) = write(file, picture)
        {
            eprintln!("{error}");
        }
    }

    fn summary(&self, scenes: &[String], explored: Vec<Option<Explored>>) -> Summary {
        let Faults { deaths, late, cuts, draws } = self.faults();
        let (backend, seed) = (self.backend.name(), self.random);
        let mut summary =
            Summary { backend, deaths, late, cuts, draws, seed, ..Summary::default() };
        for (scene, explored) in scenes.iter().zip(explored) {
            let Some(explored) = explored else {
                summary.unsupported.push(scene.clone());
                continue;
            };
            summary.scenes += 1;
            summary.runs += explored.runs;
            summary.states += explored.states;
            summary.longest = summary.longest.max(explored.longest);
            if explored.failure.is_some() {
                summary.failed.push(scene.clone());
            } else if explored.is_bounded {
                summary.bounded.push(scene.clone());
            }
        }
        summary.complete = summary.scenes > 0
            && summary.failed.is_empty()
            && summary.bounded.is_empty();
        summary
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { backend, scenes, runs, states, seconds, seed, .. } = self;
        let result = match seed {
            _ if !self.failed.is_empty() => "FAILED".to_owned(),
            Some(seed) => format!("random, seed {seed}"),
            None if self.complete => "complete".to_owned(),
            None => format!("bounded in {}", self.bounded.join(", ")),
        };
        write!(
            f,
            "{backend}: {scenes} scenes, {runs} runs, {states} states in {seconds:.0} \
             s, {result}"
        )
    }
}

fn write(file: &Path, text: &str) -> SuiteResult<()> {
    std::fs::write(file, text)
        .map_err(|error| format!("{}: {error}", file.display()).into())
}

/// A name for the file of a scene, which may be given as text.
fn file_name(scene: &str) -> String {
    let letter = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    scene.chars().map(letter).collect()
}
