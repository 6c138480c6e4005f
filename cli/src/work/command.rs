//! One run of the command, on one job.

use std::{
    future::pending,
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use relq::{
    Headers,
    worker::{Cancellation, Failure, JobContext},
};
use rustix::{io::Errno, process::Pid};
use serde_json::{Map, Value};
use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::sleep,
};

use super::{
    cannot_start::CannotStart,
    forward::{Format, Forwarding, Stream},
    group::Group,
    guards::Guards,
    payload::payload_file,
    program::Program,
    stderr_tail::StderrTail,
    whole_lines::WholeLines,
};
use crate::{printable::printable, target::Environment};

/// The pause between two tries to start a command while the system is short of
/// resources.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);

/// The command that is run on each job.
#[derive(Debug)]
pub(super) struct JobCommand {
    pub(super) program: Program,
    pub(super) environment: Environment,
    pub(super) timeout: Option<Duration>,
    pub(super) output_lines: OutputLines,
    pub(super) cannot_start: CannotStart,
    pub(super) guards: Arc<Guards>,
    /// Held by the one job that waits for scarce resources of the system. If all jobs
    /// tried at once, each would take a part of the resources that one command needs.
    pub(super) shortage: Mutex<()>,
}

/// How the output of commands is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLines {
    /// Byte by byte as the command writes it: only one command runs at a time, so
    /// nothing can mix.
    Unchanged,
    /// In whole lines.
    Whole,
    /// In whole lines, each with the id of its job.
    Tagged,
}

impl JobCommand {
    /// Runs the command; `Ok` when it exits with 0.
    ///
    /// When this future is dropped, the command's process group is killed.
    pub(super) async fn run(&self, job: JobContext) -> Result<(), Failure> {
        let (mut child, group) = self.start(&job).await?;
        let output = self.forward(&mut child, &job);
        let end = tokio::select! {
            biased;
            status = child.wait() => End::Exited(status),
            limit = self.time_is_up() => End::TimedOut(limit),
            () = job.cancelled() => End::Stopped(job.cancellation()),
        };
        match &end {
            End::Exited(_) => group.release().await,
            // Any result would count as an attempt. Without a result the job is given
            // back.
            End::Stopped(Some(Cancellation::ShutDown)) => {
                drop(group);
                return pending().await;
            }
            End::TimedOut(_) | End::Stopped(_) => group.terminate(&mut child).await,
        }
        let last_words = output.complete().await;
        match end.failure() {
            None => Ok(()),
            Some(what) if last_words.is_empty() => Err(Failure::retry(what)),
            Some(what) => Err(Failure::retry(format!("{what}: {last_words}"))),
        }
    }

    /// Forwards the output of the command to the output of relq.
    fn forward(&self, child: &mut Child, job: &JobContext) -> Output {
        let tail = Arc::new(StderrTail::default());
        let format = || match self.output_lines {
            OutputLines::Unchanged => Format::Unchanged,
            OutputLines::Whole => Format::Lines(WholeLines::new(Vec::new())),
            OutputLines::Tagged => {
                let tag = format!("{}\t", printable(job.id().as_str()));
                Format::Lines(WholeLines::new(tag.into()))
            }
        };
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        Output {
            stdout: stdout
                .map(|it| Forwarding::start(it, Stream::Output, format(), None)),
            stderr: stderr.map(|it| {
                let tail = Some(Arc::clone(&tail));
                Forwarding::start(it, Stream::Error, format(), tail)
            }),
            tail,
        }
    }

    /// Starts the command. When the system is short of resources, it waits until
    /// running commands end, because a shortage must not bury a job.
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
                    // The command would fail every job, so the worker ends and gives
                    // this job back.
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
                // The guard was killed, so its process group does not exist any more.
                // The loop takes another guard.
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
            .env("RELQ_ATTEMPT", job.attempt().to_string())
            .env("RELQ_HEADERS", headers_json(job.headers()));
        // If the worker itself runs in a command, its own RELQ variables do not apply
        // to the job.
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
            .stdout(match self.output_lines {
                OutputLines::Unchanged => Stdio::inherit(),
                OutputLines::Whole | OutputLines::Tagged => Stdio::piped(),
            })
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

/// The headers as a JSON object of strings, as `relq peek --json` shows them.
fn headers_json(headers: &Headers) -> String {
    let object: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    Value::Object(object).to_string()
}

/// How a command ended.
enum End {
    Exited(io::Result<ExitStatus>),
    TimedOut(Duration),
    Stopped(Option<Cancellation>),
}

impl End {
    /// Why the attempt failed; `None` when it succeeded.
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

/// The output of a command while it is forwarded.
struct Output {
    /// `None` when the command writes to the output of relq by itself.
    stdout: Option<Forwarding>,
    stderr: Option<Forwarding>,
    tail: Arc<StderrTail>,
}

impl Output {
    /// Waits until the output of a command that has ended is forwarded. Returns the end
    /// of its standard error.
    async fn complete(self) -> String {
        for forwarding in [self.stdout, self.stderr].into_iter().flatten() {
            forwarding.complete().await;
        }
        self.tail.text()
    }
}

/// Why a command could not be started.
enum StartFailure {
    /// The system has too few processes, files or memory at the moment.
    Shortage,
    /// The program does not exist or is not executable, or its guard cannot run.
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
