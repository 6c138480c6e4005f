//! Prepares a scenario once in a folder. Each run begins with a copy of that folder.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use relq_core::{
    Error, Queue, QueueName, WorkerId, capabilities::Capability,
    environment::Clock as _, error::RetryAdvice,
};
use tempfile::TempDir;

use super::{Embedded, Watch};
use crate::{
    Need,
    harness::environment::seeded,
    proxy::VirtualClock,
    spec::draft,
    sweep::{
        End, Found, HealthyActor, Knowledge, Part, Promise, Ran, SCENARIOS, Scenario,
        StoreContents, Survivors,
    },
};

const STORE: &str = "store";

/// A directory of Linux whose files are kept in memory, so that the runs do not wait
/// for a disk.
const IN_MEMORY: &str = "/dev/shm";

/// How long the survivors retry to open a store that another process is still closing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The seed of each actor's random numbers, so that no two make the same ids or tokens.
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

/// A scenario that was prepared for one backend.
pub(super) struct Start {
    pub(super) subject: Embedded,
    pub(super) scenario: &'static Scenario,
    /// The index of the scenario in [`SCENARIOS`].
    pub(super) index: usize,
    part: Part,
    pub(super) promise: Promise,
    pub(super) elapsed: Duration,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Start {
    /// Prepares the scenario with that index. If the backend lacks something that the
    /// scenario needs, returns that need as the error.
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
        // Open the second queue before the victim begins, because a victim that has
        // stopped in the middle of a call may keep the store locked.
        let elsewhere = elsewhere(subject, &healthy, folder.path(), &clock).await;
        let elsewhere = elsewhere.expect("the healthy actor opens another queue");
        let survivors = Survivors { clock, healthy, elsewhere };
        let prepared = scenario.prepare(&survivors, &victim()).await;
        let scene =
            prepared.unwrap_or_else(|wrong| panic!("{}: {wrong}", scenario.name));
        let files = files(&store(folder.path())).expect("the folder can be read");
        let (part, promise) = (scene.part, scene.promise);
        let elapsed = survivors.clock.elapsed();
        Ok(Self { subject, scenario, index, part, promise, elapsed, files })
    }

    /// Forgets the prepared files, so that the victim begins in an empty folder.
    pub(super) fn forget(&mut self) {
        self.files.clear();
    }

    /// The name of the scenario for a failure message.
    pub(super) fn name(&self) -> String {
        let place = if self.files.is_empty() { " in a new store" } else { "" };
        format!("{}{place}", self.scenario.name)
    }

    /// Copies the prepared files to a new folder for one run, and returns that folder.
    pub(super) fn lay_out(&self) -> TempDir {
        let folder = folder();
        for (name, bytes) in &self.files {
            let path = store(folder.path()).join(name);
            fs::write(path, bytes).expect("the folder can be written to");
        }
        folder
    }

    /// The part of the victim in a run. It has run no job yet.
    pub(super) fn part(&self) -> Part {
        Part { ran: Ran::default(), ..self.part.clone() }
    }

    /// Compares what the survivors found, and the jobs that the victim ran, with the
    /// promise of the scenario.
    pub(super) fn judge(
        &self,
        mut found: Found,
        (ran, known, fault_of_victim): (Vec<Bytes>, Knowledge, VictimFault),
    ) -> Result<StoreContents, String> {
        ran.into_iter().for_each(|one| found.promise.add(one, End::Ran));
        found.count_schedules(self.part.scene_began);
        found.count_told(&self.promise);
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

    /// Opens the actors that take over from the victim.
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
                // A process that was just killed may still hold the file. Try again.
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

/// Opens an actor on the second queue of the store. `None` if the backend has no
/// batches.
async fn elsewhere(
    subject: Embedded,
    healthy: &HealthyActor,
    folder: &Path,
    clock: &VirtualClock,
) -> Result<Option<HealthyActor>, Error> {
    if !healthy.capabilities().supports(Capability::Batches) {
        return Ok(None);
    }
    let site = Site { queue: draft::elsewhere(), folder, clock };
    let queue = open_on(subject, site, Seed::Elsewhere, None).await?;
    Ok(Some(HealthyActor { queue, worker: healthy.worker.clone() }))
}

/// Opens an actor on a queue in the folder of a run.
pub(super) async fn open(
    subject: Embedded,
    folder: &Path,
    clock: &VirtualClock,
    seed: Seed,
    watch: Option<Watch>,
) -> Result<Arc<dyn Queue>, Error> {
    let queue = QueueName::new("jobs").expect("the name is valid");
    open_on(subject, Site { queue, folder, clock }, seed, watch).await
}

/// A queue to open: its name, the folder that contains its store, and the store's
/// clock.
struct Site<'a> {
    queue: QueueName,
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
    (subject.open)(store(site.folder), site.queue, environment, watch).await
}

pub(super) fn victim() -> WorkerId {
    worker("victim")
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("the name is valid")
}

/// A new temporary folder, in memory where the system offers that. The tests kill
/// processes and not the machine, so no write has to wait for a disk.
pub(crate) fn temporary_folder() -> io::Result<TempDir> {
    tempfile::tempdir_in(IN_MEMORY).or_else(|_| tempfile::tempdir())
}

fn folder() -> TempDir {
    let folder = temporary_folder().expect("the system gives a folder");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{harness::runtime::block_on, own::sqlite::SQLITE};

    /// Prepares the scenario of that name on SQLite.
    fn prepared(name: &str) -> Start {
        let index = SCENARIOS.iter().position(|scenario| scenario.name == name);
        let start = block_on(Start::prepare(SQLITE, index.unwrap()));
        start.unwrap_or_else(|need| panic!("{need:?} is not met"))
    }

    fn told(contents: &StoreContents) -> String {
        format!("{contents:?}")
    }

    #[test]
    fn each_disposition_promises_its_own_end() {
        let start = prepared("settle_each_disposition");

        let Promise { undone, done, .. } = &start.promise;
        assert_eq!(
            told(undone),
            "[\"1x Delivered job 1\", \"1x Delivered job 2\", \"1x Delivered job 3\", \
             \"1x Delivered job 4\", \"1x Delivered job 5\", \"1x Delivered job 6\"]"
        );
        assert_eq!(
            told(done),
            "[\"1x Delivered job 2\", \"1x Delivered job 3\", \"1x Dead job 4\", \
             \"1x Delivered job 6\"]"
        );
    }

    #[test]
    fn a_cancelled_batch_promises_its_completion_job_only() {
        let start = prepared("cancel_a_batch");

        assert_eq!(told(&start.promise.done), "[\"1x Delivered complete 1\"]");
        assert_eq!(start.part().newest_receipts().len(), 1);
    }

    #[test]
    fn an_open_batch_promises_no_completion_job() {
        let start = prepared("seal_an_ended_batch");

        assert_eq!(told(&start.promise.undone), "[]");
        assert_eq!(told(&start.promise.done), "[\"1x Delivered complete 1\"]");
    }
}
