//! Starts, kills and replaces the producers and workers of a soak.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
};

use relq_core::QueueName;

use super::child::Process;
use crate::SuiteResult;

/// The number of producers at any time.
pub(super) const PRODUCERS: usize = 2;

/// The files with the records of all processes, by the kind of process.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    pub(super) producers: Vec<PathBuf>,
    pub(super) workers: Vec<PathBuf>,
}

/// The producers and workers of a soak.
pub(super) struct Processes {
    url: String,
    queues: Vec<QueueName>,
    folder: PathBuf,
    prefetch: Option<NonZeroU32>,
    producers: Vec<Process>,
    workers: Vec<Process>,
    evidence: Evidence,
}

impl Processes {
    /// Starts the producers and `workers` workers, which prefetch so many jobs. Their
    /// records go to files in `folder`. The producers push to the queues in turn, and each
    /// worker serves all.
    pub(super) fn start(
        workers: usize,
        prefetch: Option<NonZeroU32>,
        url: &str,
        queues: &[QueueName],
        folder: &Path,
    ) -> SuiteResult<Self> {
        let mut processes = Self {
            url: url.to_owned(),
            queues: queues.to_vec(),
            folder: folder.to_owned(),
            prefetch,
            producers: Vec::new(),
            workers: Vec::new(),
            evidence: Evidence::default(),
        };
        for at in 0..PRODUCERS {
            let records = processes.folder.join(format!("producer-{at}.records"));
            processes.evidence.producers.push(records);
            let producer = processes.start_producer(at)?;
            processes.producers.push(producer);
        }
        for _ in 0..workers {
            let worker = processes.start_worker()?;
            processes.workers.push(worker);
        }
        Ok(processes)
    }

    /// Kills the worker that `pick` selects, and starts another in its place.
    pub(super) fn kill_worker(
        &mut self,
        pick: impl Fn(usize) -> usize,
    ) -> SuiteResult<()> {
        let at = pick(self.workers.len());
        self.workers.swap_remove(at).kill()?;
        let worker = self.start_worker()?;
        self.workers.push(worker);
        Ok(())
    }

    /// Kills a producer, and starts another that continues from the killed one's
    /// records.
    pub(super) fn kill_producer(
        &mut self,
        pick: impl Fn(usize) -> usize,
    ) -> SuiteResult<()> {
        let at = pick(self.producers.len());
        self.producers.remove(at).kill()?;
        let producer = self.start_producer(at)?;
        self.producers.insert(at, producer);
        Ok(())
    }

    /// Fails if one of the processes ended by itself.
    pub(super) fn check(&mut self) -> SuiteResult<()> {
        let all = self.producers.iter_mut().chain(&mut self.workers);
        all.into_iter().try_for_each(Process::check)
    }

    /// Ends the producers, after every push that they began has returned.
    pub(super) fn end_producers(&mut self) -> SuiteResult<()> {
        self.producers.drain(..).try_for_each(end)
    }

    /// Ends the workers, and returns the files with all records.
    pub(super) fn end_workers(self) -> SuiteResult<Evidence> {
        self.workers.into_iter().try_for_each(end)?;
        Ok(self.evidence)
    }

    fn start_producer(&self, at: usize) -> SuiteResult<Process> {
        let (number, records) = (at.to_string(), &self.evidence.producers[at]);
        let arguments =
            [("--number", number.as_ref()), ("--records", records.as_ref())];
        let queue = &self.queues[at % self.queues.len()];
        let queue = std::slice::from_ref(queue);
        Process::start("soak-producer", &self.url, queue, &arguments)
    }

    fn start_worker(&mut self) -> SuiteResult<Process> {
        let number = self.evidence.workers.len();
        let records = self.folder.join(format!("worker-{number}.records"));
        let prefetch = self.prefetch.map(|jobs| jobs.to_string());
        let mut arguments = vec![("--records", records.as_ref())];
        arguments.extend(prefetch.iter().map(|jobs| ("--prefetch", jobs.as_ref())));
        let worker =
            Process::start("soak-worker", &self.url, &self.queues, &arguments)?;
        self.evidence.workers.push(records);
        Ok(worker)
    }
}

fn end(process: Process) -> SuiteResult<()> {
    let status = process.end()?;
    if status.success() {
        return Ok(());
    }
    Err(format!("a process failed: {status}").into())
}
