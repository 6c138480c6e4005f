//! Runs the test cases on each change of a script, until enough of them catch it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use relq_conformance::{
    Need, Profile, Room, Scope, Subject, cases, commands, judge_case_within,
    proxy::{FaultProxy, Fitted},
};
use relq_core::{
    Error, Queue, QueueName, capabilities::Capability, environment::Environment,
};

use crate::{change::Change, page::Page};

/// How many changes are tried in parallel. Most of the time each waits for its server.
const AT_ONCE: usize = 5;

/// A test case counts as hanging after this time and ten times as long as it takes on the
/// unchanged backend.
const LIMIT: Duration = Duration::from_secs(10);

/// Test cases that take longer than this are tried last.
const SLOW: Duration = Duration::from_secs(2);

/// A backend, with one change of a script if there is one.
struct Changed {
    backend: Box<dyn Subject>,
    change: Option<Change>,
    fitted: Arc<Mutex<Option<Fitted>>>,
}

#[async_trait]
impl Subject for Changed {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        if let Some(change) = &self.change {
            let fitted = proxy.patch_scripts(&change.from, &change.to);
            *self.fitted.lock().unwrap() = Some(fitted);
        }
        self.backend.prepare(proxy).await
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        self.backend.connect(endpoint, queue, environment).await
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        self.backend.plain_push(queue, payload)
    }

    fn plain_pushes_wake(&self) -> bool {
        self.backend.plain_pushes_wake()
    }

    fn room(&self) -> Room {
        self.backend.room()
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        self.backend.owns(queue, key)
    }

    fn scripts(&self) -> Vec<String> {
        self.backend.scripts()
    }
}

/// The cases that were tried on a change, and those of them that caught it.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) by: BTreeMap<&'static str, bool>,
}

impl Tried {
    pub(crate) fn caught(&self) -> BTreeSet<&'static str> {
        self.by.iter().filter(|(_, caught)| **caught).map(|(case, _)| *case).collect()
    }

    /// Notes whether a case has caught the change, with any settings of the backend.
    fn note(&mut self, case: &'static str, is_caught: bool) {
        *self.by.entry(case).or_default() |= is_caught;
    }
}

/// Returns the ids of the test cases for the backend of a page.
pub(crate) fn functional(page: &Page) -> Vec<&'static str> {
    let batches = Need::Option(Capability::Batches);
    let concerned = cases().iter().filter(|case| {
        case.scope != Scope::Embedded
            && (page.has_batches || !case.needs.contains(&batches))
    });
    concerned.map(|case| case.id).collect()
}

/// The changes that an earlier run tried, each with the test cases that caught it.
pub(crate) type Known = BTreeMap<String, BTreeSet<&'static str>>;

/// A test case, and the settings of the backend with which it runs.
#[derive(Clone, Copy)]
struct Trial {
    case: &'static str,
    backend: fn() -> Box<dyn Subject>,
}

/// Tries each change, and returns its result. Skips changes with a known result.
pub(crate) fn all(page: &Page, changes: &[Change], known: &Known) -> Vec<Tried> {
    let trials: Vec<_> = functional(page)
        .into_iter()
        .flat_map(|case| {
            page.backends.iter().map(move |backend| Trial { case, backend: *backend })
        })
        .collect();
    let unchanged: Vec<Mutex<Unchanged>> =
        trials.iter().map(|_| Mutex::default()).collect();
    in_parallel(trials.len(), |at| {
        *unchanged[at].lock().unwrap() = trials[at].run_unchanged();
    });
    let unchanged: Vec<_> =
        unchanged.into_iter().map(|one| one.into_inner().unwrap()).collect();
    let may_catch = |trial: usize, change: &Change| {
        !unchanged[trial].sent.is_disjoint(&change.scripts)
    };
    let before = |change: &Change| {
        let cases = known.get(&change.name).into_iter().flatten();
        Mutex::new(Tried { by: cases.map(|case| (*case, true)).collect() })
    };
    let tried: Vec<Mutex<Tried>> = changes.iter().map(before).collect();
    in_parallel(changes.len(), |number| {
        let change = &changes[number];
        if known.contains_key(&change.name) {
            return;
        }
        // Try the cases in another order for each change, so that different cases get
        // the chance to catch a change first.
        let order = (0..trials.len()).map(|at| (number * 31 + at * 97) % trials.len());
        let order = order.filter(|trial| may_catch(*trial, change));
        let (quick, slow): (Vec<_>, Vec<_>) =
            order.partition(|trial| unchanged[*trial].took < SLOW);
        for trial in quick.into_iter().chain(slow) {
            let tried = &tried[number];
            if tried.lock().unwrap().caught().len() >= page.enough {
                break;
            }
            let is_caught = trials[trial].catches(change, unchanged[trial].took);
            tried.lock().unwrap().note(trials[trial].case, is_caught);
        }
        let caught = tried[number].lock().unwrap().caught().len();
        println!("{caught} {}", change.name);
    });
    if page.lists_cases {
        try_idle_cases(page, &trials, changes, known, &tried, &unchanged);
    }
    tried.into_iter().map(|one| one.into_inner().unwrap()).collect()
}

/// Tries each case that has caught nothing on all changes, until it catches one.
fn try_idle_cases(
    page: &Page,
    trials: &[Trial],
    changes: &[Change],
    known: &Known,
    tried: &[Mutex<Tried>],
    unchanged: &[Unchanged],
) {
    let has_caught: BTreeSet<_> =
        tried.iter().flat_map(|one| one.lock().unwrap().caught()).collect();
    let was_looked_at = |case: &str| {
        !known.is_empty() && page.other_cases.iter().any(|(other, _)| *other == case)
    };
    let is_idle = |case: &str| !has_caught.contains(case) && !was_looked_at(case);
    let idle: Vec<_> =
        (0..trials.len()).filter(|trial| is_idle(trials[*trial].case)).collect();
    println!("{} cases have caught nothing yet", idle.len());
    in_parallel(idle.len(), |at| {
        let trial = trials[idle[at]];
        for change in 0..changes.len() {
            let number = (change * 101 + at) % changes.len();
            let is_known = tried[number].lock().unwrap().by.contains_key(trial.case);
            let Unchanged { sent, took } = &unchanged[idle[at]];
            if is_known || sent.is_disjoint(&changes[number].scripts) {
                continue;
            }
            let is_caught = trial.catches(&changes[number], *took);
            tried[number].lock().unwrap().note(trial.case, is_caught);
            if is_caught {
                println!("{} catches {}", trial.case, changes[number].name);
                return;
            }
        }
        println!("{} catches nothing", trial.case);
    });
}

/// What a case does on the unchanged backend: the names of the scripts that it sends, and
/// how long it takes.
#[derive(Default)]
struct Unchanged {
    sent: BTreeSet<String>,
    took: Duration,
}

impl Trial {
    fn run_unchanged(self) -> Unchanged {
        let subject =
            Changed { backend: (self.backend)(), change: None, fitted: Arc::default() };
        let start = Instant::now();
        let sent = commands(subject, self.case);
        Unchanged { sent, took: start.elapsed() }
    }

    /// Runs the case on the backend with this change. Returns whether the case fails because
    /// of the change. `took` is how long it takes without the change.
    fn catches(self, change: &Change, took: Duration) -> bool {
        let fitted = Arc::default();
        let subject = Changed {
            backend: (self.backend)(),
            change: Some(change.clone()),
            fitted: Arc::clone(&fitted),
        };
        let judged =
            judge_case_within(LIMIT + took * 10, subject, Profile::Redis, self.case);
        let is_fitted = fitted.lock().unwrap().as_ref().is_some_and(Fitted::get);
        if !is_fitted {
            // The case did not send the script this time, so it says nothing of the change.
            let case = self.case;
            println!("{case} did not send the script of {}: {judged:?}", change.name);
        }
        is_fitted && judged.is_err()
    }
}

fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && at < count
                {
                    work(at);
                }
            });
        }
    });
}
