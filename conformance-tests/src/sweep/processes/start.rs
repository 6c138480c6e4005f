//! The state in which each run of a scenario starts: a copy of the prepared folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use relq_core::{
    Delivery, Error, Queue, QueueName, WorkerId, capabilities::Capability,
    environment::Clock as _, error::RetryAdvice,
};
use tempfile::TempDir;

use super::{Embedded, Watch};
use crate::{
    Need,
    harness::environment::seeded,
    proxy::VirtualClock,
    sweep::{
        ELSEWHERE, End, Found, HealthyActor, Knowledge, Part, Promise, SCENARIOS,
        Scenario, StoreContents, Survivors,
    },
};

const STORE: &str = "store";

/// Where Linux keeps files in memory.
const IN_MEMORY: &str = "/dev/shm";

/// How long the survivors try to open a store that another process is closing.
const PATIENCE: Duration = Duration::from_secs(10);

/// A seed for each actor, so that no two generate the same ids or tokens.
pub(super) enum Seed {
    Preparing = 1,
    Victim = 2,
    Survivor = 3,
    Elsewhere = 4,
}

/// Whether a fault hit the victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VictimFault {
    None,
    Some,
}

/// A scenario, prepared for a backend.
pub(super) struct Start {
    pub(super) subject: Embedded,
    pub(super) scenario: &'static Scenario,
    /// The scenario's index in the list of scenarios.
    pub(super) index: usize,
    pub(super) held: Vec<Delivery>,
    pub(super) promise: Promise,
    pub(super) elapsed: Duration,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Start {
    /// Prepares a scenario. If the backend does not support an option that the scenario
    /// needs, returns that option instead.
    pub(super) async fn prepare(subject: Embedded, index: usize) -> Result<Self, Need> {
        let scenario = &SCENARIOS[index];
        let folder = folder();
        let clock = VirtualClock::new();
        let healthy = healthy(subject, folder.path(), &clock, Seed::Preparing).await;
        let healthy = healthy.expect("the healthy actor opens an empty folder");
        let is_missing = |need: &&Need| !need.is_met_by(healthy.capabilities());
        if let Some(need) = scenario.needs.iter().find(is_missing) {
            return Err(*need);
        }
        // Opened now, because a victim that stands still may keep the store locked
        // later.
        let elsewhere = elsewhere(subject, &healthy, folder.path(), &clock).await;
        let elsewhere = elsewhere.expect("the healthy actor opens another queue");
        let survivors = Survivors { clock, healthy, elsewhere };
        let scene = (scenario.prepare)(&survivors, &victim()).await;
        let files = files(&store(folder.path())).expect("the folder can be read");
        let (held, promise) = (scene.held, scene.promise);
        let elapsed = survivors.clock.elapsed();
        Ok(Self { subject, scenario, index, held, promise, elapsed, files })
    }

    /// Makes each run start in an empty folder.
    pub(super) fn forget(&mut self) {
        self.files.clear();
    }

    /// The scenario's name in a replay line.
    pub(super) fn name(&self) -> String {
        let place = if self.files.is_empty() { " in a new store" } else { "" };
        format!("{}{place}", self.scenario.name)
    }

    /// Copies the prepared files to a new folder for one run.
    pub(super) fn lay_out(&self) -> TempDir {
        let folder = folder();
        for (name, bytes) in &self.files {
            let path = store(folder.path()).join(name);
            fs::write(path, bytes).expect("the folder can be written to");
        }
        folder
    }

    /// The victim's part: its name and the deliveries it holds.
    pub(super) fn part(&self) -> Part {
        Part::new(victim(), self.held.clone())
    }

    /// Checks whether what the survivors found and what the victim ran match the
    /// promise of the act.
    pub(super) fn judge(
        &self,
        mut found: Found,
        (ran, known, fault_of_victim): (Vec<Bytes>, Knowledge, VictimFault),
    ) -> Result<StoreContents, String> {
        ran.into_iter().for_each(|one| found.promise.add(one, End::Ran));
        let promise = self.promise.bearing(fault_of_victim == VictimFault::Some);
        promise.judge(&found, known).map(|()| found.promise)
    }

    /// A clock that shows the time at which the store was prepared.
    pub(super) fn clock(&self) -> VirtualClock {
        let clock = VirtualClock::new();
        clock.advance(self.elapsed);
        clock
    }

    async fn survivor(
        &self,
        folder: &Path,
        clock: &VirtualClock,
    ) -> Result<(HealthyActor, Option<HealthyActor>), Error> {
        let healthy = healthy(self.subject, folder, clock, Seed::Survivor).await?;
        let elsewhere = elsewhere(self.subject, &healthy, folder, clock).await?;
        Ok((healthy, elsewhere))
    }

    /// Opens the actors that take over.
    pub(super) async fn survivors(
        &self,
        folder: &Path,
        clock: &VirtualClock,
    ) -> Result<Survivors, String> {
        let began = Instant::now();
        loop {
            match self.survivor(folder, clock).await {
                Ok((healthy, elsewhere)) => {
                    return Ok(Survivors { clock: clock.clone(), healthy, elsewhere });
                }
                // A process that has just released the store may still be closing it.
                Err(error)
                    if error.retry_advice() == RetryAdvice::Safe
                        && began.elapsed() < PATIENCE => {}
                Err(error) => {
                    return Err(format!("a survivor: {}", error.full_message()));
                }
            }
        }
    }
}

async fn healthy(
    subject: Embedded,
    folder: &Path,
    clock: &VirtualClock,
    seed: Seed,
) -> Result<HealthyActor, Error> {
    let queue = open(subject, folder, clock, seed, None).await?;
    Ok(HealthyActor { queue, worker: worker("hand") })
}

/// Opens an actor on the other queue of the store, if the backend supports batches.
async fn elsewhere(
    subject: Embedded,
    healthy: &HealthyActor,
    folder: &Path,
    clock: &VirtualClock,
) -> Result<Option<HealthyActor>, Error> {
    if !healthy.capabilities().supports(Capability::Batches) {
        return Ok(None);
    }
    let site = Site { queue: ELSEWHERE, folder, clock };
    let queue = open_on(subject, site, Seed::Elsewhere, None).await?;
    Ok(Some(HealthyActor { queue, worker: healthy.worker.clone() }))
}

/// Opens an actor on the folder of a run.
pub(super) async fn open(
    subject: Embedded,
    folder: &Path,
    clock: &VirtualClock,
    seed: Seed,
    watch: Option<Watch>,
) -> Result<Arc<dyn Queue>, Error> {
    open_on(subject, Site { queue: "jobs", folder, clock }, seed, watch).await
}

/// A queue of a store, and the store's clock.
struct Site<'a> {
    queue: &'static str,
    folder: &'a Path,
    clock: &'a VirtualClock,
}

async fn open_on(
    subject: Embedded,
    site: Site<'_>,
    seed: Seed,
    watch: Option<Watch>,
) -> Result<Arc<dyn Queue>, Error> {
    let environment = seeded(site.clock, seed as u64);
    let queue = QueueName::new(site.queue).expect("the name is valid");
    (subject.open)(store(site.folder), queue, environment, watch).await
}

pub(super) fn victim() -> WorkerId {
    worker("victim")
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the name is valid")
}

/// In memory where the system offers that. The tests kill processes and not the
/// machine, so nothing has to wait for a disk.
fn folder() -> TempDir {
    let folder = tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir());
    let folder = folder.expect("the system gives a folder");
    fs::create_dir(store(folder.path())).expect("the folder is new");
    folder
}

fn store(folder: &Path) -> PathBuf {
    folder.join(STORE)
}

fn files(folder: &Path) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    fs::read_dir(folder)?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name().into(), fs::read(entry.path())?))
        })
        .collect()
}
