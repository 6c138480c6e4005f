//! The tests of a backend by name, run by the `main` of a test target.

use std::{env, fmt, num::NonZeroUsize, process::ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    Case, Profile, Subject,
    acl::{User, in_case},
    cases, explore,
    harness::run::{caught, run, run_subject},
    spec,
    sweep::{self, processes, server_faults},
};

/// The environment variable that limits how many tests run at once, as it does for
/// `cargo test`.
const THREADS: &str = "RUST_TEST_THREADS";

/// The tests of a backend. A target in `Cargo.toml` runs them, without a harness:
///
/// ```toml
/// [[test]]
/// name = "conformance"
/// harness = false
/// ```
///
/// Its file is a [`Subject`] and this function:
///
/// ```no_run
/// # use std::sync::Arc;
/// # use relq_conformance::{Subject, async_trait};
/// # use relq_core::{Error, Queue, QueueName, environment::Environment};
/// # #[derive(Default)]
/// # struct Mine;
/// # #[async_trait]
/// # impl Subject for Mine {
/// #     async fn connect(
/// #         &self,
/// #         _: &str,
/// #         _: &QueueName,
/// #         _: &Environment,
/// #     ) -> Result<Arc<dyn Queue>, Error> { panic!("any backend's own") }
/// # }
/// use relq_conformance::{Profile, Tests};
///
/// fn main() -> std::process::ExitCode {
///     Tests::conformance::<Mine>(Profile::Redis).run()
/// }
/// ```
///
/// The command line is that of `cargo test`, except that it takes one filter.
#[derive(Debug)]
pub struct Tests(Vec<Test>);

struct Test {
    name: String,
    /// The reason why the test is listed as ignored and not run. `None` if it runs.
    ignored: Option<&'static str>,
    run: Box<dyn FnOnce() + Send>,
}

impl Tests {
    /// One test for each case, in real time too where the case says so, for the random
    /// sequences of [`spec`], and for each act of [`sweep`]. A backend on Redis, or with a
    /// hook at each of its [steps](Subject::processes), gets one for each scene of
    /// [`explore`](mod@explore), which runs only when it is asked for: `cargo test
    /// --release --test conformance -- --ignored interleavings`. So do the acts of an
    /// embedded backend (`steps`), which need the hook, too.
    ///
    /// In a process that such an act has started, it makes the calls of that process and
    /// does not return.
    pub fn conformance<S: Subject + Default>(profile: Profile) -> Self {
        let sequences = of_models::<S>(profile).and(of_steps::<S>(profile));
        of_cases::<S>(profile, run::<S>).and(sequences)
    }

    /// The cases and the sequences that combine options, which inject no fault at a
    /// command of their own choice. For a queue that one call may change in part.
    pub fn without_faults<S: Subject + Default>(profile: Profile) -> Self {
        of_cases::<S>(profile, run::<S>).and(Self(vec![crossed::<S>(profile)]))
    }

    /// One test for each act of [`sweep`], and one for each scene of
    /// [`explore`](mod@explore), as [`conformance`](Self::conformance) has them.
    pub fn steps<S: Subject + Default>(profile: Profile) -> Self {
        of_steps::<S>(profile)
    }

    /// The tests of a backend on Redis. Each case runs with the rights of that user of
    /// the server and no others, as the [`acl`](mod@crate::acl) tests do.
    pub fn conformance_as<S: Subject + Default>(user: User) -> Self {
        let run =
            move |profile, id: &str| run_subject(in_case::<S>(&user, id), profile, id);
        let sequences =
            of_models::<S>(Profile::Redis).and(of_steps::<S>(Profile::Redis));
        of_cases::<S>(Profile::Redis, run).and(sequences)
    }

    /// One test for each fault of the [server](server_faults), for a backend on Redis.
    /// The slow ones run only when they are asked for: `cargo test --release --test
    /// server_faults -- --ignored`.
    pub fn server_faults<S: Subject + Default>() -> Self {
        let test = |fault| Test::new(fault, move || server_faults::run::<S>(fault));
        let slow = |fault| Test { ignored: Some("slow"), ..test(fault) };
        let slow = server_faults::slow_names().map(slow);
        Self(server_faults::names().map(test).chain(slow).collect())
    }

    /// The same tests with `prefix::` before their names, to tell the modes of a
    /// backend apart.
    #[must_use]
    pub fn named(mut self, prefix: &str) -> Self {
        for test in &mut self.0 {
            test.name = format!("{prefix}::{}", test.name);
        }
        self
    }

    /// Runs only every `nth` of the tests whose names begin with `prefix`, beginning with
    /// the first. The others run when they are asked for: `-- --ignored`.
    #[must_use]
    pub fn sampled(mut self, prefix: &str, nth: NonZeroUsize) -> Self {
        let named = self.0.iter_mut().filter(|test| test.name.starts_with(prefix));
        for (_, test) in named.enumerate().filter(|(at, _)| *at % nth != 0) {
            test.ignored = Some("sampled");
        }
        self
    }

    /// These tests and the other ones.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Runs the tests that the command line selects, prints the result of each, and
    /// returns the exit code of the program.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        if arguments.test_threads.is_none() {
            let threads = env::var(THREADS).ok();
            arguments.test_threads = threads.and_then(|it| it.parse().ok());
        }
        let trials = self.0.into_iter().map(Test::trial).collect();
        libtest_mimic::run(&arguments, trials).exit_code()
    }
}

impl Test {
    fn new(name: &str, run: impl FnOnce() + Send + 'static) -> Self {
        Self { name: name.to_owned(), ignored: None, run: Box::new(run) }
    }

    fn trial(self) -> Trial {
        let Self { name, ignored, run } = self;
        let trial = Trial::test(name, || caught(run).map_err(Failed::from));
        trial
            .with_ignored_flag(ignored.is_some())
            .with_kind(ignored.unwrap_or_default())
    }
}

impl fmt::Debug for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ignored {
            Some(why) => write!(f, "{}, ignored: {why}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// One test for each case. On Redis also one for each case with `real_time`, on a
/// server without the proxy.
fn of_cases<S: Subject + Default>(
    profile: Profile,
    run: impl Fn(Profile, &'static str) + Clone + Send + 'static,
) -> Tests {
    let test = |name: &str, profile, case: &Case| {
        let (run, id) = (run.clone(), case.id);
        Test::new(name, move || run(profile, id))
    };
    let subject = S::default();
    let each = cases().iter().map(|case| Test {
        ignored: case.not_concerned(profile, &subject),
        ..test(case.id, profile, case)
    });
    let has_both = |case: &&Case| profile == Profile::Redis && case.is_in_real_time;
    let in_real_time = cases().iter().filter(has_both);
    let in_real_time = in_real_time
        .map(|case| test(&format!("bare::{}", case.id), Profile::Bare, case));
    Tests(each.chain(in_real_time).collect())
}

/// The tests of the random and the crossed sequences.
fn of_models<S: Subject + Default>(profile: Profile) -> Tests {
    let random = format!("model::{}", spec::NAME);
    let random = Test::new(&random, move || spec::run::<S>(profile));
    Tests(vec![random, crossed::<S>(profile)])
}

/// The test of the sequences that combine two options.
fn crossed<S: Subject + Default>(profile: Profile) -> Test {
    let name = format!("model::{}", spec::CROSSED);
    Test::new(&name, move || spec::run_crossed::<S>(profile))
}

/// One test for each act, and for each scene that can be explored.
fn of_steps<S: Subject + Default>(profile: Profile) -> Tests {
    let mut tests = Vec::new();
    match profile {
        Profile::Redis => {
            tests.push(Test::new("steps::every_script_is_reached", sweep::reach::<S>));
            tests.extend(sweep::names().map(|act| {
                Test::new(&format!("steps::{act}"), || sweep::run::<S>(act))
            }));
        }
        Profile::Embedded => tests.extend(of_processes::<S>()),
        Profile::Bare => {}
    }
    if explore::can_explore(&S::default(), profile) {
        tests.extend(explore::scenes_on(profile).map(|scene| Test {
            ignored: Some("slow"),
            ..Test::new(&format!("interleavings::{scene}"), || {
                explore::run::<S>(scene, 0);
            })
        }));
    }
    Tests(tests)
}

/// One test for each act of an embedded backend. It runs only when it is asked for.
fn of_processes<S: Subject + Default>() -> impl Iterator<Item = Test> {
    let hook = S::default().processes();
    if let Some(hook) = hook
        && processes::is_child()
    {
        processes::live(hook);
    }
    let why = if hook.is_some() { "slow" } else { "no Subject::processes" };
    sweep::names().map(move |act| Test {
        ignored: Some(why),
        ..Test::new(&format!("steps::{act}"), || sweep::run_in_processes::<S>(act))
    })
}
