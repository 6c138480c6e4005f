//! Runs the worker in random scenarios, and checks that it keeps its promises.
//!
//! A scenario has jobs, handlers, faults of single calls, outages, suspends and an end.
//! The worker runs on a scripted queue in virtual time: nothing waits in real time. The
//! checks then read the trace of calls and handlers. Each check is named after the
//! promise that it checks, and gives the rule of `CONTRACT.md`.
//!
//! Each scenario runs three times: with a worker on one queue, with one that prefetches
//! jobs, and with one that serves another queue first, which is empty or whose store is
//! down.
//!
//! The scenarios of a run follow from one seed, which a failure prints with the line
//! that replays it.
//!
//! * `RELQ_WORKER_SEED`: the seed of the first scenario; the default is fixed.
//! * `RELQ_WORKER_SCENARIOS`: how many scenarios run; the default takes some seconds.
//! * `RELQ_WORKER_SHRINKS`: how many smaller scenarios are tried after a failure.
//! * `RELQ_WORKER_UNTIL`: the name of a promise. The run goes on after failures until
//!   this promise is broken, and tries no smaller scenarios.
//! * `RELQ_WORKER_TRACE=1`: prints the trace of a scenario that fails.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checks;
mod clock;
mod facts;
mod handler;
mod observed;
mod other_queue;
mod queue;
mod report;
mod scenario;
mod simulation;
mod store;
mod strategy;
mod trace;

use std::{
    env,
    str::FromStr,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::{
        Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
    },
};

use crate::{
    facts::Facts, other_queue::OtherStore, report::Violations, scenario::Scenario,
};

const SEED: u64 = 1;
const SCENARIOS: u64 = 150;
const SHRINKS: u32 = 150;
const OTHER_STORES: [OtherStore; 3] =
    [OtherStore::Empty, OtherStore::Down, OtherStore::Silent];

/// How many jobs a worker prefetches.
const PREFETCHED: [u32; 3] = [1, 3, 20];

/// How a run differs from the scenario of its seed.
#[derive(Debug, Clone, Copy)]
enum Variant {
    Plain,
    Prefetching(u32),
    WithOther(OtherStore),
}

/// The real time after which one scenario counts as stuck.
const STUCK: Duration = Duration::from_secs(60);

#[test]
fn the_worker_keeps_its_promises_in_random_sequences() {
    let first = setting("RELQ_WORKER_SEED").unwrap_or(SEED);
    let scenarios = setting("RELQ_WORKER_SCENARIOS").unwrap_or(SCENARIOS);
    println!("seeds {first} to {}", first + scenarios - 1);
    let seed = watch();
    let until: Option<String> = setting("RELQ_WORKER_UNTIL");
    for this in first..first + scenarios {
        seed.store(this, Relaxed);
        match &until {
            Some(promise) => run_until(this, promise),
            None => {
                let nth = (this % 3) as usize;
                run(this, Variant::Plain);
                run(this, Variant::Prefetching(PREFETCHED[nth]));
                run(this, Variant::WithOther(OTHER_STORES[nth]));
            }
        }
    }
    seed.store(u64::MAX, Relaxed);
}

/// Runs the scenario of one seed. Fails the test if the worker breaks the promise of
/// this name.
fn run_until(seed: u64, promise: &str) {
    let scenario = strategy::scenarios().new_tree(&mut runner(seed)).unwrap().current();
    let is_of_prefetch = checks::prefetch::PROMISES.contains(&promise);
    let jobs = PREFETCHED[(seed % 3) as usize];
    let variant =
        if is_of_prefetch { Variant::Prefetching(jobs) } else { Variant::Plain };
    let scenario = variant.of(scenario);
    let violations = violations(&scenario).0;
    violations.iter().for_each(|violation| println!("seed {seed}: {violation}"));
    let is_broken = violations.iter().any(|violation| violation.promise == promise);
    assert!(!is_broken, "the worker broke the promise {promise}");
}

fn setting<T: FromStr>(name: &str) -> Option<T> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} cannot be {text}")))
}

/// Ends the process when a scenario takes too long in real time, because a loop that
/// never waits cannot be stopped in any other way.
fn watch() -> &'static AtomicU64 {
    static CURRENT: AtomicU64 = AtomicU64::new(0);
    thread::spawn(|| {
        let (mut seen, mut since) = (0, Instant::now());
        while seen != u64::MAX {
            thread::sleep(Duration::from_millis(500));
            let current = CURRENT.load(Relaxed);
            if current != seen {
                (seen, since) = (current, Instant::now());
            } else if since.elapsed() > STUCK {
                println!("PROMISE never_hangs (R21): a scenario runs without an end");
                println!("{}", replay(current));
                std::process::exit(101);
            }
        }
    });
    &CURRENT
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let config = Config {
        cases: 1,
        failure_persistence: None,
        max_shrink_iters: setting("RELQ_WORKER_SHRINKS").unwrap_or(SHRINKS),
        ..Config::default()
    };
    TestRunner::new_with_rng(config, random)
}

fn run(seed: u64, variant: Variant) {
    let scenarios =
        strategy::scenarios().prop_map(move |scenario| variant.of(scenario));
    let result = runner(seed).run(&scenarios, |scenario| {
        let violations = violations(&scenario).0;
        let words: Vec<_> = violations.iter().map(ToString::to_string).collect();
        if words.is_empty() {
            Ok(())
        } else {
            Err(TestCaseError::fail(words.join("\n")))
        }
    });
    if let Err(TestError::Fail(words, scenario)) = result {
        tell(seed, &scenario, words.message());
    }
}

impl Variant {
    fn of(self, mut scenario: Scenario) -> Scenario {
        match self {
            Self::Plain => {}
            Self::Prefetching(jobs) => scenario.settings.prefetch = jobs,
            Self::WithOther(store) => scenario.other_queue = Some(store),
        }
        scenario
    }
}

fn violations(scenario: &Scenario) -> Violations {
    checks::check(&Facts::of(simulation::simulate(scenario)))
}

/// Panics with the smallest scenario that fails, and the promises that it breaks.
fn tell(seed: u64, scenario: &Scenario, words: &str) -> ! {
    let facts = Facts::of(simulation::simulate(scenario));
    println!("{scenario:#?}");
    if env::var_os("RELQ_WORKER_TRACE").is_some() {
        facts
            .events
            .iter()
            .for_each(|event| println!("{:?} {:?}", event.at, event.what));
    }
    println!("{words}");
    panic!("the worker broke a promise\n{}", replay(seed));
}

fn replay(seed: u64) -> String {
    format!(
        "replay: RELQ_WORKER_SEED={seed} RELQ_WORKER_SCENARIOS=1 \
         cargo test -p relq-worker --test reference -- --nocapture"
    )
}
