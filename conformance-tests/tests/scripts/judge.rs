//! Runs the test cases on each change of a script, until enough of them catch it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use relq_conformance::{
    Need, Profile, Scope, Subject, cases, commands, judge_case_within,
    proxy::{FaultProxy, Fitted},
};
use relq_core::{
    Error, Queue, QueueName, capabilities::Capability, environment::Environment,
};
use relq_zset::{ZsetConfig, ZsetQueue};

use crate::{change::Change, survivors::OTHERS};

/// How many changes are tried in parallel. Most of the time each waits for its server.
const AT_ONCE: usize = 5;

/// The time after which a test case counts as hanging. The slowest one takes a few
/// seconds.
const LIMIT: Duration = Duration::from_secs(20);

/// How many test cases must catch a change. Afterwards only the cases that have caught
/// no change yet are still tried on it.
const ENOUGH: usize = 3;

/// The unchanged zset backend.
#[derive(Default)]
struct Zset;

#[async_trait]
impl Subject for Zset {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        open(endpoint, queue, environment).await
    }
}

async fn open(
    endpoint: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Result<Arc<dyn Queue>, Error> {
    let config = ZsetConfig::new(endpoint).unwrap().environment(environment.clone());
    Ok(Arc::new(ZsetQueue::connect(config, queue.clone()).await?))
}

/// The zset backend with one change of a script.
struct Changed {
    change: Change,
    fitted: Arc<Mutex<Option<Fitted>>>,
}

#[async_trait]
impl Subject for Changed {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let fitted = proxy.patch_scripts(&self.change.from, &self.change.to);
        *self.fitted.lock().unwrap() = Some(fitted);
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        open(endpoint, queue, environment).await
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
}

/// Returns the ids of the test cases for a backend on Redis that has no batches.
pub(crate) fn functional() -> Vec<&'static str> {
    let batches = Need::Option(Capability::Batches);
    let concerned = cases()
        .iter()
        .filter(|case| case.scope != Scope::Embedded && !case.needs.contains(&batches));
    concerned.map(|case| case.id).collect()
}

/// The changes that an earlier run tried, each with the test cases that caught it.
pub(crate) type Known = BTreeMap<String, BTreeSet<&'static str>>;

/// Tries each change, and returns its result. Skips changes with a known result.
pub(crate) fn all(changes: &[Change], known: &Known) -> Vec<Tried> {
    let cases = functional();
    let sent: Vec<Mutex<BTreeSet<String>>> =
        cases.iter().map(|_| Mutex::default()).collect();
    in_parallel(cases.len(), |at| {
        *sent[at].lock().unwrap() = commands::<Zset>(cases[at]);
    });
    let may_catch = |case: usize, change: &Change| {
        !sent[case].lock().unwrap().is_disjoint(&change.scripts)
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
        let order = (0..cases.len()).map(|at| (number * 31 + at * 97) % cases.len());
        for case in order.filter(|case| may_catch(*case, change)) {
            let tried = &tried[number];
            if tried.lock().unwrap().caught().len() >= ENOUGH {
                break;
            }
            if !tried.lock().unwrap().by.contains_key(cases[case]) {
                let is_caught = catches(cases[case], change);
                tried.lock().unwrap().by.insert(cases[case], is_caught);
            }
        }
        let caught = tried[number].lock().unwrap().caught().len();
        println!("{caught} {}", change.name);
    });
    let has_caught: BTreeSet<_> =
        tried.iter().flat_map(|one| one.lock().unwrap().caught()).collect();
    let was_looked_at = |case: usize| {
        !known.is_empty() && OTHERS.iter().any(|(other, _)| *other == cases[case])
    };
    let idle: Vec<_> = (0..cases.len())
        .filter(|case| !has_caught.contains(cases[*case]) && !was_looked_at(*case))
        .collect();
    println!("{} cases have caught nothing yet", idle.len());
    in_parallel(idle.len(), |at| {
        let case = idle[at];
        for change in 0..changes.len() {
            let number = (change * 101 + at) % changes.len();
            let is_known = tried[number].lock().unwrap().by.contains_key(cases[case]);
            if is_known || !may_catch(case, &changes[number]) {
                continue;
            }
            let is_caught = catches(cases[case], &changes[number]);
            tried[number].lock().unwrap().by.insert(cases[case], is_caught);
            if is_caught {
                println!("{} catches {}", cases[case], changes[number].name);
                return;
            }
        }
        println!("{} catches nothing", cases[case]);
    });
    tried.into_iter().map(|one| one.into_inner().unwrap()).collect()
}

/// Runs a case on a backend with this change. Returns whether the case fails because of
/// the change.
fn catches(case: &str, change: &Change) -> bool {
    let fitted = Arc::default();
    let subject = Changed { change: change.clone(), fitted: Arc::clone(&fitted) };
    let judged = judge_case_within(LIMIT, subject, Profile::Redis, case);
    let is_fitted = fitted.lock().unwrap().as_ref().is_some_and(Fitted::get);
    if !is_fitted {
        // The case did not send the script this time, so it says nothing of the change.
        println!("{case} did not send the script of {}: {judged:?}", change.name);
    }
    is_fitted && judged.is_err()
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
