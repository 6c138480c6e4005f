//! Runs the test cases on each change, until enough of them catch it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use relq_conformance::{Need, cases};
use relq_core::capabilities::Capability;

use crate::{
    change::Change,
    code::Code,
    page::{Page, named},
};

/// How many changes are tried in parallel. Most of the time each waits for its server.
const AT_ONCE: usize = 5;

/// A test case counts as hanging after this time and ten times as long as it takes on the
/// unchanged backend.
const LIMIT: Duration = Duration::from_secs(10);

/// Test cases that take longer than this are tried last.
const SLOW: Duration = Duration::from_secs(2);

/// The cases that were tried on a change, and those of them that caught it.
#[derive(Default)]
pub(crate) struct Tried {
    pub(crate) by: BTreeMap<&'static str, bool>,
}

impl Tried {
    pub(crate) fn caught(&self) -> BTreeSet<&'static str> {
        self.by.iter().filter(|(_, caught)| **caught).map(|(case, _)| *case).collect()
    }
}

/// Returns the ids of the test cases for the backend of a page.
pub(crate) fn functional(page: &Page) -> Vec<&'static str> {
    let batches = Need::Option(Capability::Batches);
    let concerned = cases().iter().filter(|case| {
        page.code.is_concerned(case.scope)
            && (page.has_batches || !case.needs.contains(&batches))
    });
    concerned.map(|case| case.id).collect()
}

/// The changes that an earlier run tried, each with the test cases that caught it.
pub(crate) type Known = BTreeMap<String, BTreeSet<&'static str>>;

/// Tries each change, and returns its result. Skips changes with a known result.
pub(crate) fn all(page: &Page, changes: &[Change], known: &Known) -> Vec<Tried> {
    let ids = functional(page);
    let cases: Vec<_> = ids.iter().map(|_| OnceLock::new()).collect();
    in_parallel(ids.len(), |at| {
        cases[at].get_or_init(|| Case::run(page.code, ids[at]));
    });
    let cases: Vec<_> = cases.into_iter().filter_map(OnceLock::into_inner).collect();
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
        let order = (0..cases.len()).map(|at| (number * 31 + at * 97) % cases.len());
        let order = order.map(|at| &cases[at]).filter(|case| case.may_catch(change));
        let (quick, slow): (Vec<_>, Vec<_>) = order.partition(|case| case.took < SLOW);
        let mut tried = tried[number].lock().unwrap();
        for case in quick.into_iter().chain(slow) {
            if tried.caught().len() >= page.enough {
                break;
            }
            tried.by.insert(case.id, case.catches(change));
        }
        println!("{} {}", tried.caught().len(), change.name);
    });
    if page.lists_cases {
        try_idle_cases(page, &cases, changes, known, &tried);
    }
    tried.into_iter().map(|one| one.into_inner().unwrap()).collect()
}

/// Tries each case that has caught nothing on all changes, until it catches one.
fn try_idle_cases(
    page: &Page,
    cases: &[Case],
    changes: &[Change],
    known: &Known,
    tried: &[Mutex<Tried>],
) {
    let has_caught: BTreeSet<_> =
        tried.iter().flat_map(|one| one.lock().unwrap().caught()).collect();
    let was_looked_at = |id: &str| {
        !known.is_empty() && named(page.other_cases).any(|(other, _)| other == id)
    };
    let is_idle =
        |case: &&Case| !has_caught.contains(case.id) && !was_looked_at(case.id);
    let idle: Vec<_> = cases.iter().filter(is_idle).collect();
    println!("{} cases have caught nothing yet", idle.len());
    in_parallel(idle.len(), |at| {
        let case = idle[at];
        for change in 0..changes.len() {
            let number = (change * 101 + at) % changes.len();
            let is_known = tried[number].lock().unwrap().by.contains_key(case.id);
            if is_known || !case.may_catch(&changes[number]) {
                continue;
            }
            let is_caught = case.catches(&changes[number]);
            tried[number].lock().unwrap().by.insert(case.id, is_caught);
            if is_caught {
                println!("{} catches {}", case.id, changes[number].name);
                return;
            }
        }
        println!("{} catches nothing", case.id);
    });
}

/// A test case, and what it did on the unchanged backend.
struct Case {
    id: &'static str,
    code: Code,
    /// The names of the scripts or statements that it ran.
    ran: BTreeSet<String>,
    took: Duration,
}

impl Case {
    /// Runs the case on the unchanged backend.
    ///
    /// # Panics
    /// If the case fails.
    fn run(code: Code, id: &'static str) -> Self {
        let start = Instant::now();
        let ran = code.run_unchanged(id);
        Self { id, code, ran, took: start.elapsed() }
    }

    fn may_catch(&self, change: &Change) -> bool {
        !self.ran.is_disjoint(&change.scripts)
    }

    /// Runs the case on the backend with this change. Returns whether the case fails because
    /// of the change.
    fn catches(&self, change: &Change) -> bool {
        let judged = self.code.judge(self.id, change, LIMIT + self.took * 10);
        if !judged.is_fitted {
            // The case did not run the changed code this time, so it says nothing of the
            // change.
            let result = &judged.result;
            println!("{} did not run {}: {result:?}", self.id, change.name);
        }
        judged.is_fitted && judged.result.is_err()
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
