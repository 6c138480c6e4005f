//! Runs the command of `--exec` on one job.

use std::{
    future::pending,
    io,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use relq::{
    Headers,
    results::MAX_RESULT,
    worker::{Cancellation, Failure, JobContext},
};
use rustix::{io::Errno, process::Pid};
use tokio::{
    process::{Child, Command},
    sync::Mutex,
    time::sleep,
};

use super::{
    cannot_start::CannotStart,
    forward::{Format, Forwarding, KeepsOutput, Printed, Stream},
    group::Group,
    guards::{GuardEnded, Guards},
    payload::payload_file,
    program::Program,
    result_bytes::{ResultBytes, TooLong},
    stderr_tail::StderrTail,
    whole_lines::WholeLines,
};
use crate::{
    printable::printable,
    target::{Environment, QUEUE},
    view::HeadersJson,
};

/// The pause between two tries to start a command while the system is short of
/// resources.
const SHORTAGE_PAUSE: Duration = Duration::from_millis(200);

/// How many guards in a row may end at their start. If more do, the cause is not a shortage
/// of resources: guards cannot run on this system.
const MOST_ENDED_GUARDS: u32 = 25;

/// The command of `--exec`, and the state that its processes for all jobs share.
#[derive(Debug)]
pub(super) struct JobCommand {
    pub(super) program: Program,
    pub(super) environment: Environment,
    pub(super) timeout: Option<Duration>,
    pub(super) output_lines: OutputLines,
    pub(super) cannot_start: CannotStart,
    pub(super) guards: Arc<Guards>,
    /// A job holds this lock while it waits until the system has resources for its
    /// command. If all waiting jobs tried at once, each would take a part of the
    /// resources that one command needs.
    pub(super) shortage: Mutex<()>,
}

/// How the output of commands is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputLines {
    /// Bytes are printed as the command writes them. Only one command runs at a time,
    /// so no outputs mix.
    Unchanged,
    /// Only whole lines are printed.
    Whole,
    /// Only whole lines are printed, each with the id of its job at the beginning.
    Tagged,
}

impl JobCommand {
    /// Runs the command on a job. Returns `Ok` if the command exits with 0. Then its output
    /// is the result of the job, if the job keeps one.
    ///
    /// If this future is dropped, the command's process group is killed.
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
            // Return no result: a result would count the attempt, and without one the
            // worker gives the job back.
            End::Stopped(Some(Cancellation::ShutDown)) => {
                drop(group);
                return pending().await;
            }
            End::TimedOut(_) | End::Stopped(_) => group.terminate(&mut child).await,
        }
        let Completed { printed, last_words, result } = output.complete().await;
        match (end.failure(), result) {
            // The result has the whole output, even if printing it failed.
            (None, Some(result)) => set_result(&job, &result),
            // A command that ends before its output pipe is closed gets no SIGPIPE, so it
            // may succeed although a part of its output was lost.
            (None, None) if printed == Printed::InPart => {
                Err(Failure::retry("the output of the command could not be printed"))
            }
            (None, None) => Ok(()),
            (Some(what), _) if last_words.is_empty() => Err(Failure::retry(what)),
            (Some(what), _) => Err(Failure::retry(format!("{what}: {last_words}"))),
        }
    }

    /// Forwards the output of the command to the output of relq.
    fn forward(&self, child: &mut Child, job: &JobContext) -> Output {
        let tail = Arc::new(StderrTail::default());
        let result = job.keeps_result().then(|| Arc::new(ResultBytes::default()));
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
            stdout: stdout.map(|it| {
                let copy = result.clone().map(|result| result as Arc<dyn KeepsOutput>);
                Forwarding::start(it, Stream::Output, format(), copy)
            }),
            stderr: stderr.map(|it| {
                let copy: Arc<dyn KeepsOutput> = Arc::clone(&tail) as _;
                Forwarding::start(it, Stream::Error, format(), Some(copy))
            }),
            tail,
            result,
        }
    }

    /// Starts the command. If the system is short of resources, waits until running
    /// commands end, because a shortage must not count as a failed attempt.
    async fn start(&self, job: &JobContext) -> Result<(Child, Group), Failure> {
        let (mut turn, mut ended_guards) = (None, 0);
        loop {
            let error = match self.try_start(job).await {
                Ok(started) => return Ok(started),
                Err(error) => error,
            };
            let path = self.program.path.display();
            let message = format!("the command {path} cannot be started: {error}");
            match StartFailure::of(&error) {
                StartFailure::Shortage => ended_guards = 0,
                StartFailure::GuardEnded if ended_guards < MOST_ENDED_GUARDS => {
                    ended_guards += 1;
                }
                StartFailure::GuardEnded | StartFailure::Hopeless => {
                    // The command would fail for every job. So the worker ends, and
                    // this future never returns, which gives the job back.
                    self.cannot_start.tell(message);
                    return pending().await;
                }
                StartFailure::TooLong => {
                    return Err(Failure::dead(format!(
                        "{message}; the headers of the job are too long for RELQ_HEADERS"
                    )));
                }
                StartFailure::Other => return Err(Failure::retry(message)),
            }
            self.guards.end_idle();
            if turn.is_some() {
                sleep(SHORTAGE_PAUSE).await;
            } else {
                tracing::warn!("{message}; waiting");
                turn = Some(self.shortage.lock().await);
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
                // The next turn of the loop takes another guard.
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
        // RELQ variables that this worker inherited, because it runs in a command
        // itself, are replaced or removed: they describe another job.
        let batch = job.batch().map(|batch| batch.as_str().into());
        let enqueued_at = job.enqueued_at().map(|at| at.unix_ms().to_string().into());
        let own = self.environment.variables().iter().cloned();
        let queue = job.queue().map(|name| (QUEUE, Some(name.as_str().into())));
        let optional = [("RELQ_BATCH", batch), ("RELQ_ENQUEUED_AT_MS", enqueued_at)];
        for (name, value) in own.chain(queue).chain(optional) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
            .stdin(payload_file(job.payload())?)
            .stdout(match self.output_lines {
                OutputLines::Unchanged if !job.keeps_result() => Stdio::inherit(),
                _ => Stdio::piped(),
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

/// Sets the output of a command that succeeded as the result of its job. An output that is
/// too long buries the job: another attempt would repeat the work, and then fail too.
fn set_result(job: &JobContext, result: &ResultBytes) -> Result<(), Failure> {
    match result.take() {
        Ok(result) => Ok(job.set_result(result)?),
        Err(TooLong) => Err(Failure::dead(format!(
            "the command succeeded, but its output has more than the {MAX_RESULT} bytes \
             that a result may have"
        ))),
    }
}

/// The headers as a JSON object of strings, as `relq peek --json` shows them.
fn headers_json(headers: &Headers) -> String {
    serde_json::to_string(&HeadersJson(headers)).expect("names and values are texts")
}

/// How a command ended: by itself, by a time limit, or because it was stopped.
enum End {
    Exited(io::Result<ExitStatus>),
    TimedOut(Duration),
    Stopped(Option<Cancellation>),
}

impl End {
    /// The reason why the attempt failed. `None` if it succeeded.
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

/// The two outputs of a running command, which are forwarded to those of relq.
struct Output {
    /// `None` if the command writes directly to the output of relq.
    stdout: Option<Forwarding>,
    stderr: Option<Forwarding>,
    tail: Arc<StderrTail>,
    /// The copy of the standard output. `None` if the job keeps no result.
    result: Option<Arc<ResultBytes>>,
}

/// The end of a command, and what is known of its output by then.
struct Completed {
    printed: Printed,
    /// The last part of the standard error.
    last_words: String,
    /// The standard output. `None` if the job keeps no result.
    result: Option<Arc<ResultBytes>>,
}

impl Output {
    /// Waits until the whole output of a command that has ended is forwarded.
    async fn complete(self) -> Completed {
        let mut printed = Printed::All;
        if let Some(stdout) = self.stdout {
            printed = stdout.complete().await;
        }
        if let Some(stderr) = self.stderr {
            stderr.complete().await;
        }
        Completed { printed, last_words: self.tail.text(), result: self.result }
    }
}

/// Why a command was not started.
#[derive(Debug, PartialEq, Eq)]
enum StartFailure {
    /// The system has no process, file or memory for it at the moment. A later try may
    /// succeed.
    Shortage,
    /// The guard of the command ended at its start, as it does in a shortage.
    GuardEnded,
    /// No job can start the command: its program does not exist or is not executable.
    Hopeless,
    /// The arguments and the environment are too long. relq itself was started with nearly
    /// the same ones, so the cause is what the job adds, and no attempt can start.
    TooLong,
    Other,
}

impl StartFailure {
    fn of(error: &io::Error) -> Self {
        if let Some(cause) = error.get_ref()
            && cause.is::<GuardEnded>()
        {
            return Self::GuardEnded;
        }
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                Self::Shortage
            }
            Some(Errno::NOENT | Errno::ACCESS | Errno::PERM | Errno::NOEXEC) | None => {
                Self::Hopeless
            }
            Some(Errno::TOOBIG) => Self::TooLong,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shortage passes, so its jobs are postponed. A program that cannot be run at all stops
    /// the worker. Everything else is the failure of one job, and no attempt of a job whose
    /// headers are too long can start.
    #[test]
    fn each_reason_why_a_command_does_not_start_is_told_apart() {
        let of = |errno: Errno| StartFailure::of(&errno.into());
        for errno in [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
            assert_eq!(of(errno), StartFailure::Shortage, "{errno}");
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::PERM, Errno::NOEXEC] {
            assert_eq!(of(errno), StartFailure::Hopeless, "{errno}");
        }
        assert_eq!(of(Errno::TOOBIG), StartFailure::TooLong);
        assert_eq!(of(Errno::IO), StartFailure::Other);
    }

    /// The guard is the program that runs, which is the program of these tests here. It knows
    /// no test of the guard's name, and ends.
    #[tokio::test]
    async fn a_guard_that_ends_at_its_start_is_waited_for() {
        let error = Guards::default().take().await.unwrap_err();

        assert_eq!(error.to_string(), "its guard has ended");
        assert_eq!(StartFailure::of(&error), StartFailure::GuardEnded);
    }
}
