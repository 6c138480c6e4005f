//! Starts, kills and replaces the worker processes of the demo.

use std::{
    env, io,
    path::{Path, PathBuf},
    process::Stdio,
};

use relq::{QueueName, environment::Environment};
use tokio::process::{Child, Command};

use super::judge::Evidence;
use crate::failure::{CommandResult, Failure};

/// The running worker processes, and the record files of all workers so far.
#[derive(Debug)]
pub(super) struct WorkerProcesses {
    program: PathBuf,
    url: String,
    queues: Vec<QueueName>,
    /// Whether each process also runs a scheduler.
    schedules: bool,
    folder: PathBuf,
    living: Vec<Worker>,
    evidence: Vec<Evidence>,
}

#[derive(Debug)]
struct Worker {
    process: Child,
    /// The position of this worker's record file in the list of all record files.
    number: usize,
}

impl WorkerProcesses {
    /// Starts `size` workers on these queues, which write their records to files in
    /// `folder`. With `schedules` each process also runs a scheduler.
    pub(super) fn start<'a>(
        (size, schedules): (usize, bool),
        url: &str,
        queues: impl Iterator<Item = &'a QueueName>,
        folder: &Path,
    ) -> CommandResult<Self> {
        let program = env::current_exe().map_err(|error| cannot_start(&error))?;
        let mut worker_processes = Self {
            program,
            url: url.to_owned(),
            queues: queues.cloned().collect(),
            schedules,
            folder: folder.to_owned(),
            living: Vec::with_capacity(size),
            evidence: Vec::new(),
        };
        for _ in 0..size {
            let worker = worker_processes.start_worker()?;
            worker_processes.living.push(worker);
        }
        Ok(worker_processes)
    }

    /// Kills one worker, chosen at random, with SIGKILL and starts another.
    pub(super) async fn kill_one(
        &mut self,
        environment: &Environment,
    ) -> CommandResult {
        let at = pick(self.living.len(), environment);
        let victim = &mut self.living[at];
        victim.process.kill().await.map_err(|error| {
            Failure::Failed(format!("a worker cannot be killed: {error}"))
        })?;
        self.evidence[victim.number].was_killed = true;
        self.living[at] = self.start_worker()?;
        Ok(())
    }

    /// How many workers were killed so far.
    pub(super) fn kills(&self) -> usize {
        self.evidence.iter().filter(|worker| worker.was_killed).count()
    }

    /// Fails if a worker ended by itself: only kills may end workers.
    pub(super) fn check(&mut self) -> CommandResult {
        for worker in &mut self.living {
            match worker.process.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => {
                    let message = format!("a worker ended by itself ({status})");
                    return Err(Failure::Failed(message));
                }
                Err(error) => return Err(Failure::Failed(error.to_string())),
            }
        }
        Ok(())
    }

    /// Ends all workers by closing their standard input. After that their record files
    /// are complete and can be read.
    pub(super) async fn dismiss(mut self) -> CommandResult<Vec<Evidence>> {
        for worker in &mut self.living {
            worker.process.kill().await.map_err(|error| {
                Failure::Failed(format!("a worker cannot be ended: {error}"))
            })?;
        }
        Ok(self.evidence)
    }

    fn start_worker(&mut self) -> CommandResult<Worker> {
        let number = self.evidence.len();
        let records = self.folder.join(format!("worker-{number}.records"));
        let process = Command::new(&self.program)
            .args(["demo-worker", "--records"])
            .arg(&records)
            .args(self.schedules.then_some("--schedules"))
            .args(self.queues.iter().flat_map(|name| ["--serve", name.as_str()]))
            // The URL is not an argument, because all users of the machine can read
            // arguments.
            .env("RELQ_URL", &self.url)
            // By default workers log only errors: each kill causes warnings, which
            // would confuse the user of the demo.
            .env("RELQ_LOG", env::var_os("RELQ_LOG").unwrap_or_else(|| "error".into()))
            // The end of standard input tells a worker that the demo has ended.
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| cannot_start(&error))?;
        self.evidence.push(Evidence { records, was_killed: false });
        Ok(Worker { process, number })
    }
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::Failed(format!("a worker process cannot be started: {error}"))
}

fn pick(size: usize, environment: &Environment) -> usize {
    let mut bytes = [0; 4];
    environment.random().fill(&mut bytes);
    u32::from_le_bytes(bytes) as usize % size
}
