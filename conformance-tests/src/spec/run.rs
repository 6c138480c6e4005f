//! Draws sequences, runs them, and shrinks those that fail.

use std::{cell::Cell, env, sync::Arc};

use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};
use relq_core::{QueueName, capabilities::Capability};
use tempfile::TempDir;

use super::{
    actors::{Actors, Site},
    crossed,
    pinned::{PINNED, Pinned},
    runner::{RunCounts, Scrutiny, run_sequence},
    sequence::{Sequence, Steps},
    strategy::{
        Batches, Faults, Followers, LookUps, Options, Restores, Results, Schedules,
        sequences,
    },
};
use crate::{Profile, Subject, harness::runtime::Panics, server::Server};

/// How many random sequences run, unless `PROPTEST_CASES` sets another number.
const CASES: u32 = 64;

/// How many random sequences of jobs that follow each other run, unless `PROPTEST_CASES`
/// sets another number.
const CASES_OF_FOLLOWERS: u32 = 40;

/// How many random sequences that find jobs by their ids run, unless `PROPTEST_CASES` sets
/// another number.
const CASES_OF_LOOK_UPS: u32 = 40;

/// The seed of all sequences, unless `PROPTEST_RNG_SEED` sets another. With a fixed
/// seed, two runs of the suite test the same sequences.
const SEED: u64 = 1;

/// How often the suite tries, at most, to simplify the operations of a failed sequence.
const SHRINKS: u32 = 1000;

/// How many columns of the crossed sequences occur in all combinations, unless
/// `RELQ_CROSSED` sets another number. Three take some minutes for each backend.
const CROSSED: usize = 2;

/// The environment variable that holds a replay line.
const REPLAY: &str = "RELQ_REPLAY";

/// How much a run has tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// The number of sequences.
    pub sequences: u64,
    /// The number of operations in all sequences.
    pub operations: u64,
    /// The number of faults that fired.
    pub faults_fired: u64,
}

/// Compares a backend with the reference model by random sequences, and by those that
/// once found a bug. [`Tests`](crate::Tests) calls this.
///
/// # Panics
/// When a sequence breaks a rule. The message says what is wrong, and has the replay
/// line of the shortest failing sequence that was found.
pub fn run<S: Subject + Default>(profile: Profile) {
    expect_ok(judge_random(Arc::new(S::default()), profile));
}

/// Compares a backend with the reference model by the crossed sequences, which combine
/// options, states and calls. [`Tests`](crate::Tests) calls this.
///
/// # Panics
/// When a sequence breaks a rule, as [`run`] does.
pub fn run_crossed<S: Subject + Default>(profile: Profile) {
    expect_ok(judge_crossed(Arc::new(S::default()), profile));
}

fn expect_ok(judged: Result<Summary, String>) {
    match judged {
        Ok(summary) => println!("{summary:?}"),
        Err(wrong) => panic!("{wrong}"),
    }
}

/// Compares a backend with the reference model by all its sequences, and returns the
/// size of the run.
///
/// # Errors
/// The broken rule, and the replay line that repeats the failure.
pub fn judge(subject: &Arc<dyn Subject>, profile: Profile) -> Result<Summary, String> {
    let random = judge_random(Arc::clone(subject), profile)?;
    let crossed = judge_crossed(Arc::clone(subject), profile)?;
    Ok(Summary {
        sequences: crossed.sequences + random.sequences,
        operations: crossed.operations + random.operations,
        faults_fired: crossed.faults_fired + random.faults_fired,
    })
}

/// Compares a backend with the reference model by random sequences, after those that once
/// found a bug.
///
/// # Errors
/// The errors of [`judge`].
pub fn judge_random(
    subject: Arc<dyn Subject>,
    profile: Profile,
) -> Result<Summary, String> {
    let model_run = ModelRun::open(profile, subject)?;
    if let Some(line) = env::var_os(REPLAY) {
        let line = line.into_string().map_err(|_| format!("{REPLAY} is not UTF-8"))?;
        model_run.run_sequence(&line.parse()?, Scrutiny::Printed)?;
        return Ok(model_run.summary.get());
    }
    PINNED.iter().try_for_each(|pinned| model_run.run_pinned(pinned))?;
    model_run.run_all()
}

/// Compares a backend with the reference model by the crossed sequences, which combine
/// options, states and calls.
///
/// # Errors
/// The errors of [`judge`].
pub fn judge_crossed(
    subject: Arc<dyn Subject>,
    profile: Profile,
) -> Result<Summary, String> {
    let model_run = ModelRun::open(profile, subject)?;
    let crossed = crossed::sequences(strength()?);
    crossed.iter().try_for_each(|sequence| model_run.run_crossed(sequence))?;
    Ok(model_run.summary.get())
}

/// The store for the sequences. Each sequence runs on its own queue.
struct ModelRun {
    panics: Panics,
    site: Site,
    subject: Arc<dyn Subject>,
    summary: Cell<Summary>,
}

impl ModelRun {
    fn open(profile: Profile, subject: Arc<dyn Subject>) -> Result<Self, String> {
        let site = match profile {
            Profile::Redis | Profile::Bare => Site::Redis(Server::start()),
            Profile::Embedded => {
                let directory = TempDir::new();
                Site::Embedded(directory.map_err(|error| error.to_string())?)
            }
        };
        Ok(Self { panics: Panics::default(), site, subject, summary: Cell::default() })
    }

    fn run_pinned(&self, Pinned { line, found }: &Pinned) -> Result<(), String> {
        let wrong = |wrong| {
            format!("found before ({found}): {wrong}\nreplay: {REPLAY}='{line}'")
        };
        self.run_sequence(&line.parse()?, Scrutiny::Full).map_err(wrong)
    }

    fn run_crossed(&self, sequence: &Sequence) -> Result<(), String> {
        let ran = self.run_sequence(sequence, Scrutiny::Sampled);
        ran.map_err(|wrong| {
            let (wrong, sequence) = self.shorten(wrong, sequence.clone());
            format!("{wrong}\nreplay: {REPLAY}='{sequence}'")
        })
    }

    /// Which options the backend has, by the capabilities that it declares.
    fn options(&self) -> Result<Options, String> {
        let queue = QueueName::new("model-0").map_err(|error| error.to_string())?;
        let subject = Arc::clone(&self.subject);
        let setting = async {
            let actors = Actors::set(&self.site, subject, queue, Steps::Usual);
            let actors = actors.await?;
            let can = actors.capabilities();
            let has_batches = can.supports(Capability::Batches);
            let has_schedules = can.supports(Capability::Schedules);
            let has_results = can.supports(Capability::Results);
            let has_followers = can.supports(Capability::Followers);
            let is_inspected = can.supports(Capability::Inspect);
            let restores = can.supports(Capability::Restore);
            actors.take_down();
            Ok(Options {
                batches: if has_batches { Batches::Some } else { Batches::None },
                schedules: if has_schedules {
                    Schedules::Some
                } else {
                    Schedules::None
                },
                results: if has_results { Results::Some } else { Results::None },
                followers: if has_followers {
                    Followers::Some
                } else {
                    Followers::None
                },
                look_ups: if is_inspected { LookUps::Some } else { LookUps::None },
                restores: if restores { Restores::Some } else { Restores::None },
            })
        };
        let asked = self.panics.on_this_thread(setting);
        asked.map_err(|error| format!("no runtime: {error}"))?
    }

    /// Runs random sequences in which no job follows another; then, if the backend has
    /// followers, sequences in which many do; and then, if it finds jobs by their ids,
    /// sequences without followers that do that, run jobs now, list workers and, if the
    /// backend can, restore jobs. The first ones are the same on each backend.
    fn run_all(&self) -> Result<Summary, String> {
        let options = self.options()?;
        let without =
            Options { look_ups: LookUps::None, restores: Restores::None, ..options };
        self.run_random(Options { followers: Followers::None, ..without }, CASES)?;
        if options.followers == Followers::Some {
            self.run_random(without, CASES_OF_FOLLOWERS)?;
        }
        if options.look_ups == LookUps::Some {
            let alone = Options { followers: Followers::None, ..options };
            self.run_random(alone, CASES_OF_LOOK_UPS)?;
        }
        Ok(self.summary.get())
    }

    fn run_random(&self, options: Options, cases: u32) -> Result<(), String> {
        let faults = match self.site {
            Site::Redis(_) => Faults::Some,
            Site::Embedded(_) => Faults::None,
        };
        let mut runner = TestRunner::new(config(cases));
        let judged = runner.run(&sequences(faults, options), |sequence| {
            self.run_sequence(&sequence, Scrutiny::Sampled).map_err(TestCaseError::fail)
        });
        match judged {
            Ok(()) => Ok(()),
            Err(TestError::Fail(wrong, sequence)) => {
                let (wrong, sequence) = self.shorten(wrong.to_string(), sequence);
                Err(format!("{wrong}\nreplay: {REPLAY}='{sequence}'"))
            }
            Err(TestError::Abort(reason)) => Err(reason.to_string()),
        }
    }

    /// Removes each operation without which the sequence still fails, after its numbers
    /// were simplified.
    fn shorten(&self, mut wrong: String, mut sequence: Sequence) -> (String, Sequence) {
        let mut at = sequence.operations.len();
        while at > 0 {
            at -= 1;
            let mut shorter = sequence.clone();
            shorter.operations.remove(at);
            if let Err(still_wrong) = self.run_sequence(&shorter, Scrutiny::Full) {
                (wrong, sequence) = (still_wrong, shorter);
                at = sequence.operations.len();
            }
        }
        (wrong, sequence)
    }

    fn run_sequence(
        &self,
        sequence: &Sequence,
        scrutiny: Scrutiny,
    ) -> Result<(), String> {
        let mut summary = self.summary.get();
        summary.sequences += 1;
        let queue = QueueName::new(format!("model-{}", summary.sequences));
        let queue = queue.map_err(|error| error.to_string())?;
        let playing = {
            let subject = Arc::clone(&self.subject);
            run_sequence(&self.site, subject, queue, sequence, scrutiny)
        };
        let ran = self.panics.on_this_thread(playing);
        let ran = ran.map_err(|error| format!("no runtime: {error}"))?;
        let panics = self.panics.take();
        if !panics.is_empty() {
            return Err(format!("background panics: {panics:?}"));
        }
        let counted = ran.as_ref().copied().unwrap_or_default();
        let RunCounts { operations, faults_fired } = counted;
        summary.operations += operations;
        summary.faults_fired += faults_fired;
        self.summary.set(summary);
        ran.map(drop)
    }
}

/// How many columns of the crossed sequences occur in all combinations: the value of
/// `RELQ_CROSSED`, or [`CROSSED`].
fn strength() -> Result<usize, String> {
    match env::var("RELQ_CROSSED") {
        Ok(number) => {
            number.parse().map_err(|_| "RELQ_CROSSED is no number".to_owned())
        }
        Err(_) => Ok(CROSSED),
    }
}

fn config(cases: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if env::var_os("PROPTEST_CASES").is_none() {
        config.cases = cases;
    }
    if env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(SEED);
    }
    config.max_shrink_iters = SHRINKS;
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sequence that is written as text and parsed again is the same sequence.
    #[test]
    fn a_sequence_is_read_as_it_was_printed() {
        let mut runner = TestRunner::new(config(CASES));
        let all = Options {
            batches: Batches::Some,
            schedules: Schedules::Some,
            results: Results::Some,
            followers: Followers::Some,
            look_ups: LookUps::Some,
            restores: Restores::Some,
        };

        let read = runner.run(&sequences(Faults::Some, all), |sequence| {
            let observed = sequence.to_string();
            if observed.parse() == Ok(sequence) {
                return Ok(());
            }
            Err(TestCaseError::fail(observed))
        });

        assert_eq!(read, Ok(()));
    }

    /// Each pinned line can be parsed, and is written in the same form again.
    #[test]
    fn each_pinned_line_can_be_read() {
        for Pinned { line, .. } in PINNED {
            let read = line.parse().map(|sequence: Sequence| sequence.to_string());

            assert_eq!(read.as_deref(), Ok(*line));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(
            "p dance".parse::<Sequence>(),
            Err("`p dance` is not an operation".to_owned())
        );
    }
}
