//! One run of the command, on one job.

use std::{
    future::pending,
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use relq::worker::{Cancellation, Failure, JobContext};
use rustix::{io::Errno, process::Pid};
use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::sleep,
};

use super::{
    cannot_start::CannotStart, group::Group, guards::Guards, payload::payload_file,
    program::Program, stderr_tail::StderrTail,
};
use crate::args::Environment;

/// Between two tries to start a command while the system is short of something.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);

/// What is run on each job.
#[derive(Debug)]
pub(super) struct JobCommand {
    pub(super) program: Program,
    pub(super) environment: Environment,
    pub(super) timeout: Option<Duration>,
    pub(super) cannot_start: CannotStart,
    pub(super) guards: Arc<Guards>,
    /// Held by the job whose turn it is to wait for what the system is short of. All at
    /// once would each take a part of what one needs.
    pub(super) shortage: Mutex<()>,
}

impl JobCommand {
    /// Runs the command; `Ok` when it exits with 0.
    ///
    /// When this future is dropped, the command's process group is killed.
    pub(super) async fn run(&self, job: JobContext) -> Result<(), Failure> {
        let (mut child, group) = self.start(&job).await?;
        let tail = child.stderr.take().map(StderrTail::of);
        let end = tokio::select! {
            biased;
            status = child.wait() => End::Exited(status),
            limit = self.time_is_up() => End::TimedOut(limit),
            () = job.cancelled() => End::Stopped(job.cancellation()),
        };
        match &end {
            End::Exited(_) => group.release().await,
            // Any answer would count as an attempt; without one the job is given back.
            End::Stopped(Some(Cancellation::ShutDown)) => {
                drop(group);
                return pending().await;
            }
            End::TimedOut(_) | End::Stopped(_) => group.terminate(&mut child).await,
        }
        match end.failure() {
            None => Ok(()),
            Some(what) => Err(Failure::retry(with_last_words(what, tail).await)),
        }
    }

    /// Starts the command. When the system is short of something, it waits: the
    /// commands that run will end, and a job must not be buried for that.
    async fn start(&self, job: &JobContext) -> Result<(Child, Group), Failure> {
        let mut turn = None;
        loop {
            let error = match self.try_start(job).await {
                Ok(started) => return Ok(started),
                Err(error) => error,
            };
            let path = self.program.path.display();
            let message = format!("the command {path} cannot be started: {error}");
            match StartFailure::of(&error) {
                StartFailure::Shortage => {
                    self.guards.end_idle();
                    if turn.is_some() {
                        sleep(SHORTAGE_PAUSE).await;
                        continue;
                    }
                    tracing::warn!("{message}; waiting");
                    turn = Some(self.shortage.lock().await);
                }
                StartFailure::Hopeless => {
                    // It would fail every job: the worker ends and gives this one back.
                    self.cannot_start.tell(message);
                    return pending().await;
                }
                StartFailure::Other => return Err(Failure::retry(message)),
            }
        }
    }

    async fn try_start(&self, job: &JobContext) -> io::Result<(Child, Group)> {
        loop {
            let mut guard = self.guards.take().await?;
            if !guard.arm().await {
                continue;
            }
            match self.spawn(job, guard.group()) {
                Ok(child) => {
                    return Ok((child, Group::new(guard, Arc::clone(&self.guards))));
                }
                // The group of a guard that was killed cannot be joined.
                Err(_) if !guard.is_running() => {}
                Err(error) => {
                    self.guards.give_back(guard).await;
                    return Err(error);
                }
            }
        }
    }

    fn spawn(&self, job: &JobContext, group: Pid) -> io::Result<Child> {
        let mut command = Command::new(&self.program.path);
        command
            .args(&self.program.arguments)
            .env("RELQ_ID", job.id().as_str())
            .env("RELQ_ATTEMPT", job.attempt().to_string());
        // Those of a worker which runs in a command itself are not the job's.
        let batch = job.batch().map(|batch| batch.as_str().into());
        let own = self.environment.variables().iter().cloned();
        for (name, value) in own.chain([("RELQ_BATCH", batch)]) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .stdin(payload_file(job.payload())?)
            .stderr(Stdio::piped())
            .process_group(group.as_raw_nonzero().get())
            .spawn()
    }

    async fn time_is_up(&self) -> Duration {
        let Some(limit) = self.timeout else { return pending().await };
        sleep(limit).await;
        limit
    }
}

/// How a command came to its end.
enum End {
    Exited(io::Result<ExitStatus>),
    TimedOut(Duration),
    Stopped(Option<Cancellation>),
}

impl End {
    /// Why the attempt failed; `None` when it did not.
    fn failure(&self) -> Option<String> {
        match self {
            Self::Exited(Ok(status)) if status.success() => None,
            Self::Exited(Ok(status)) => Some(status.to_string()),
            Self::Exited(Err(error)) => {
                Some(format!("it cannot be waited for: {error}"))
            }
            Self::TimedOut(limit) => {
                let limit = humantime::format_duration(*limit);
                Some(format!("the command took longer than {limit}"))
            }
            Self::Stopped(why) => Some(format!("the command was stopped: {why:?}")),
        }
    }
}

async fn with_last_words(what: String, tail: Option<StderrTail>) -> String {
    let Some(tail) = tail else { return what };
    let said = tail.text().await;
    if said.is_empty() { what } else { format!("{what}: {said}") }
}

/// Why a command could not be started.
enum StartFailure {
    /// Of processes, files or memory, for now.
    Shortage,
    /// There is no such program, or none that may be run, or none to guard it.
    Hopeless,
    Other,
}

impl StartFailure {
    fn of(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Self::Shortage
            }
            Some(Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::NOEXEC) | None => {
                Self::Hopeless
            }
            _ => Self::Other,
        }
    }
}
