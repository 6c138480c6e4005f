//! One run of the command, on one job.

use std::{
    fs::File,
    future::pending,
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use relq::{
    QueueName,
    worker::{Cancellation, Failure, JobContext},
};
use tokio::{process::Command, time::sleep};

use super::{
    cannot_start::CannotStart, group::Group, payload::payload_file, program::Program,
    stderr_tail::StderrTail,
};

/// What is run on each job.
#[derive(Debug)]
pub(super) struct JobCommand {
    pub(super) program: Program,
    pub(super) queue: QueueName,
    pub(super) timeout: Option<Duration>,
    pub(super) cannot_start: CannotStart,
}

impl JobCommand {
    /// Runs the command; `Ok` when it exits with 0.
    ///
    /// When this future is dropped, the command's process group is killed.
    pub(super) async fn run(&self, job: JobContext) -> Result<(), Failure> {
        let payload = payload_file(job.payload()).map_err(|error| {
            Failure::retry(format!("the payload cannot be handed over: {error}"))
        })?;
        let mut child = match self.command(&job, payload).spawn() {
            Ok(child) => child,
            Err(error) => return Err(self.not_started(&error).await),
        };
        let group = Group::of(&child);
        let tail = child.stderr.take().map(StderrTail::of);
        let end = tokio::select! {
            biased;
            status = child.wait() => End::Exited(status),
            limit = self.time_is_up() => End::TimedOut(limit),
            () = job.cancelled() => End::Stopped(job.cancellation()),
        };
        match &end {
            End::Exited(_) => group.release(),
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

    fn command(&self, job: &JobContext, payload: File) -> Command {
        let mut command = Command::new(&self.program.path);
        command
            .args(&self.program.arguments)
            .env("RELQ_ID", job.id().as_str())
            .env("RELQ_ATTEMPT", job.attempt().to_string())
            .env("RELQ_QUEUE", self.queue.as_str())
            .stdin(payload)
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }

    async fn time_is_up(&self) -> Duration {
        let Some(limit) = self.timeout else { return pending().await };
        sleep(limit).await;
        limit
    }

    /// A command that cannot be started at all would fail every job: the worker ends,
    /// and this job is given back. Of any other trouble there may be less later on.
    async fn not_started(&self, error: &io::Error) -> Failure {
        let path = self.program.path.display();
        let message = format!("the command {path} cannot be started: {error}");
        if !is_hopeless(error) {
            return Failure::retry(message);
        }
        self.cannot_start.tell(message);
        pending().await
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

fn is_hopeless(error: &io::Error) -> bool {
    let not_executable = rustix::io::Errno::NOEXEC.raw_os_error();
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
        || error.raw_os_error() == Some(not_executable)
}
