//! The tests of a backend by name, run by the `main` of a test target.

use std::{env, fmt, process::ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

use crate::{
    Case, Profile, Scope, Subject, cases,
    harness::run::{caught, run},
    spec,
    sweep::{self, server_faults},
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
    /// Why the test is shown and not run.
    ignored: Option<&'static str>,
    run: Box<dyn FnOnce() + Send>,
}

impl Tests {
    /// One test for each case, in real time too where the case says so, and for the
    /// random sequences of [`spec`]. A backend on Redis also gets one for each act of
    /// [`sweep`].
    pub fn conformance<S: Subject + Default>(profile: Profile) -> Self {
        let of_cases = cases().iter().map(|case| Test {
            ignored: not_concerned(case, profile),
            ..Test::new(case.id, move || run::<S>(profile, case.id))
        });
        let mut tests: Vec<_> = of_cases.collect();
        let sequences = format!("model::{}", spec::NAME);
        tests.push(Test::new(&sequences, move || spec::run::<S>(profile)));
        if profile == Profile::Redis {
            tests.extend(in_real_time::<S>());
            tests.push(Test::new("steps::every_script_is_reached", sweep::reach::<S>));
            tests.extend(sweep::names().map(|act| {
                Test::new(&format!("steps::{act}"), || sweep::run::<S>(act))
            }));
        }
        Self(tests)
    }

    /// One test for each fault of the [server](server_faults), for a backend on Redis.
    pub fn server_faults<S: Subject + Default>() -> Self {
        let test = |fault| Test::new(fault, move || server_faults::run::<S>(fault));
        Self(server_faults::names().map(test).collect())
    }

    /// The same tests with `prefix::` before their names, for a backend with modes.
    #[must_use]
    pub fn named(mut self, prefix: &str) -> Self {
        for test in &mut self.0 {
            test.name = format!("{prefix}::{}", test.name);
        }
        self
    }

    /// Adds other tests.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Runs the tests that the command line chooses, and reports each.
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
        f.write_str(&self.name)
    }
}

/// The cases that also run in real time, on a server without the proxy.
fn in_real_time<S: Subject + Default>() -> impl Iterator<Item = Test> {
    let cases = cases().iter().filter(|case| case.is_in_real_time);
    cases.map(|case| {
        let name = format!("bare::{}", case.id);
        Test::new(&name, || run::<S>(Profile::Bare, case.id))
    })
}

/// Why a case is not run on that kind of store.
fn not_concerned(case: &Case, profile: Profile) -> Option<&'static str> {
    match (case.scope, profile) {
        (Scope::Redis, Profile::Embedded) => Some("Redis only"),
        (Scope::Embedded, Profile::Redis | Profile::Bare) => Some("embedded only"),
        _ => None,
    }
}
