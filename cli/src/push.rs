//! `relq push`: pushes one job for each payload or each line of a file. One call pushes
//! many jobs, and a file of any length needs the same memory.

mod due;
mod gathering;
mod ids;
mod lines;
mod progress;
mod sender;
mod stopped;

use std::{
    ffi::OsString, io::Read, os::unix::ffi::OsStringExt, path::PathBuf, sync::Arc,
    time::Duration,
};

use relq::{
    Bytes, JobId, NewJob, Queue, error::Effect, outcome::Pushed, unique::UniqueKey,
};
use sha2::{Digest, Sha256};

use crate::{
    failure::{CommandResult, Failure, explain},
    format::Format,
    interrupts::Interrupts,
    job_options::JobOptions,
    piped_input::{self, STANDARD_INPUT},
    result::{self, CODES, Waiting, results_of},
    target::Target,
    values::positive_duration,
};
use due::DueAt;
use ids::Ids;
use lines::{Limits, Lines};
use progress::Progress;
pub(crate) use sender::{Sender, Unsent};
use stopped::Unit;

/// Push jobs: the given payloads, or one job for each line of a file
///
/// Without payloads, the lines of standard input are pushed if it is a pipe or a file, as in
/// `seq 10 | relq push`.
///
/// A line is any bytes but the newline. An empty line is a job with an empty payload,
/// and a last line without a newline counts. Each call pushes many lines, all or
/// nothing. A call whose reply was lost is repeated safely. When the push has to stop,
/// it says how many lines from the start are stored.
///
/// Prints the ids as they are stored, one per line. With -o json it prints an array of
/// objects {"id", "stored"}, and with -o jsonl one object a line. A duplicate job has the id
/// of the existing job, and `stored` is false.
///
/// With --keep-result, `relq result ID` prints what becomes of a job. With --wait, the push
/// of one job waits until it has ended, and prints its result in place of its id: the bytes
/// unchanged, or with -o json what `relq result -o json` prints of it. Standard error says
/// what became of a job that is not done.
///
/// With --after the jobs follow another job, which has an id of your own (--id) or keeps its
/// result: they are held, become ready in the step in which that job is done, and are
/// cancelled if it ends otherwise. The push fails if that job has ended otherwise or is not
/// known, and stores no job of its call.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("Exit codes of --wait: {CODES}"))]
pub(crate) struct Args {
    /// The payloads, one job each
    #[arg(conflicts_with = "file")]
    payload: Vec<OsString>,

    /// Push each line of this file; - is standard input
    #[arg(short, long)]
    file: Option<PathBuf>,

    /// Lines of the file end with a NUL byte, not a newline
    #[arg(long)]
    null: bool,

    #[command(flatten)]
    options: JobOptions,

    /// Make the jobs ready at this time, by the clock of this machine, such as
    /// 2026-12-24T18:00:00Z; or 2026-12-24T18:00 and 18:00, which are local times. If it has
    /// passed, they are ready at once
    #[arg(
        long,
        value_name = "TIME",
        value_parser = DueAt::parse,
        conflicts_with_all = ["delay", "after"]
    )]
    at: Option<DueAt>,

    /// Use the SHA-256 of each payload as the job's unique key, as --unique does
    #[arg(long, conflicts_with = "unique")]
    unique_payload: bool,

    /// An id of your own for one job: pushing it again stores no second job
    #[arg(long, conflicts_with_all = ["file", "unique_payload"])]
    id: Option<JobId>,

    /// Hold the jobs until the job with this id is done
    #[arg(long, value_name = "ID")]
    after: Option<JobId>,

    /// Wait for the result of the job, for at most this time from when it is stored, such as
    /// 30s [default: no limit]
    #[arg(
        long,
        value_name = "TIMEOUT",
        requires = "keep_result",
        conflicts_with_all = ["file", "quiet"],
        require_equals = true,
        value_parser = positive_duration
    )]
    wait: Option<Option<Duration>>,

    /// Print the number of stored jobs, not their ids
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    format: Format,
}

const ALL_STORED: &str = "all jobs are stored";

const NOTHING: &str = "\
nothing to push: give payloads, or a file of lines with --file (- is standard input)";

impl Args {
    pub(crate) async fn run(mut self, target: &Target) -> CommandResult {
        let takes_input = self.take_piped_input();
        self.check()?;
        if let Some(timeout) = self.wait {
            return self.push_and_wait(target.open().await?, timeout).await;
        }
        let interrupts = Interrupts::listen()?;
        // Open the file first: if it cannot be read, no store is created.
        let file = match &self.file {
            Some(path) => Some(unless_stopped(&interrupts, lines::open(path)).await?),
            None => None,
        };
        let queue = unless_stopped(&interrupts, target.open()).await?;
        let lines = self.lines(file, Limits::of(queue.capabilities()));
        let sender = Sender::new(queue, interrupts);
        let mut ids = Ids::new(self.quiet, self.format)?;
        let progress = Progress::start(self.file.as_deref(), self.quiet);
        let pushed = self.push_all(lines, &sender, &mut ids, &progress);
        let pushed = Box::pin(pushed).await;
        progress.clear();
        let printed = ids.end();
        if takes_input && matches!(pushed, Ok(0)) {
            return Err(Failure::Usage(NOTHING.to_owned()));
        }
        pushed.map(drop).and(printed.map_err(|failure| failure.after(ALL_STORED)))
    }

    /// Reads standard input if nothing else is given and it is a pipe or a file. Returns
    /// whether it does.
    fn take_piped_input(&mut self) -> bool {
        let is_for_one_job = self.id.is_some() || self.wait.is_some();
        let is_given = !self.payload.is_empty() || self.file.is_some();
        if is_given || is_for_one_job || !piped_input::is_there() {
            return false;
        }
        self.file = Some(STANDARD_INPUT.into());
        true
    }

    fn check(&self) -> CommandResult {
        let problem = if self.payload.is_empty() && self.file.is_none() {
            NOTHING
        } else if self.null && self.file.is_none() {
            "--null says how the lines of a --file end: give one"
        } else if self.id.is_some() && self.payload.len() > 1 {
            "--id names one job: push the others by calls of their own"
        } else if self.wait.is_some() && self.payload.len() > 1 {
            "--wait waits for one job: push several without it, and wait with `relq result \
             --wait`"
        } else {
            return self.options.check();
        };
        Err(Failure::Usage(problem.to_owned()))
    }

    /// Pushes one job, and waits for its result. A duplicate waits for the result of the
    /// existing job.
    async fn push_and_wait(
        mut self,
        queue: Arc<dyn Queue>,
        timeout: Option<Duration>,
    ) -> CommandResult {
        let results = results_of(&*queue)?;
        let sender = Sender::new(Arc::clone(&queue), Interrupts::listen()?);
        let payload = self.payload.pop().unwrap_or_default();
        let job = self.job(payload.into_vec().into())?;
        let pushed = send(&sender, &[job], (Unit::Payload, 0)).await?;
        let Some(id) = pushed.first().map(Pushed::job) else { return Ok(()) };
        let stored = format!(
            "the job {id} is stored, so do not push it again: `relq result --wait {id}` \
             waits for its result"
        );
        let found = Waiting::new(results, &sender, timeout).until_ended(id).await;
        let found = found.map_err(|failure| failure.after(&stored))?;
        result::show(id, &found, self.format)
    }

    /// The payloads to push: the lines of the file, or those that were given.
    fn lines(&mut self, file: Option<Box<dyn Read + Send>>, limits: Limits) -> Lines {
        if let Some(file) = file {
            return Lines::of(file, if self.null { b'\0' } else { b'\n' }, limits);
        }
        let payloads = std::mem::take(&mut self.payload).into_iter();
        let bytes = payloads.map(|payload| Bytes::from(payload.into_vec()));
        Lines::given(bytes.collect(), limits)
    }

    async fn push_all(
        &self,
        mut lines: Lines,
        sender: &Sender,
        ids: &mut Ids,
        progress: &Progress,
    ) -> CommandResult<usize> {
        let unit = self.unit();
        let mut done = 0;
        while let Some(payloads) =
            next_batch(&mut lines, sender.interrupts(), (unit, done)).await?
        {
            let jobs = self.jobs(payloads)?;
            let mut rest = &jobs[..];
            while !rest.is_empty() {
                // Check before each call: a queue of several parts may need many calls for the
                // lines of one read.
                if sender.interrupts().any() {
                    return Err(unit.stopped("by a signal", done, None));
                }
                let (call, after) = rest.split_at(sender.jobs_of_one_call(rest));
                let pushed = send(sender, call, (unit, done)).await?;
                (rest, done) = (after, done + call.len());
                let is_all = rest.is_empty() && lines.are_all_pushed();
                let stored =
                    if is_all { ALL_STORED.to_owned() } else { unit.stored(done) };
                ids.stored(&pushed).map_err(|failure| failure.after(&stored))?;
                progress.advance(call.len(), bytes_of(call));
            }
        }
        Ok(done)
    }

    fn unit(&self) -> Unit {
        if self.file.is_some() { Unit::Line } else { Unit::Payload }
    }

    fn jobs(&self, payloads: Vec<Bytes>) -> CommandResult<Vec<NewJob>> {
        payloads.into_iter().map(|payload| self.job(payload)).collect()
    }

    fn job(&self, payload: Bytes) -> CommandResult<NewJob> {
        let key = self.unique_payload.then(|| payload_key(&payload)).transpose()?;
        let mut job = self.options.job(payload);
        if let Some(at) = self.at {
            job.delay = at.delay();
        }
        job.id.clone_from(&self.id);
        job.after.clone_from(&self.after);
        Ok(match key {
            Some(key) => job.unique(key),
            None => job,
        })
    }
}

/// Opens a file or the store. A signal ends the wait for the writer of a FIFO, or for a
/// store that does not answer.
async fn unless_stopped<T>(
    interrupts: &Interrupts,
    opening: impl Future<Output = CommandResult<T>>,
) -> CommandResult<T> {
    tokio::select! {
        biased;
        () = interrupts.first() => Err(Unit::Line.stopped("by a signal", 0, None)),
        opened = opening => opened,
    }
}

async fn next_batch(
    lines: &mut Lines,
    interrupts: &Interrupts,
    (unit, done): (Unit, usize),
) -> CommandResult<Option<Vec<Bytes>>> {
    tokio::select! {
        biased;
        () = interrupts.first() => Err(unit.stopped("by a signal", done, None)),
        batch = lines.next() => match batch {
            None => Ok(None),
            Some(Ok(payloads)) => Ok(Some(payloads)),
            Some(Err(error)) => Err(unit.stopped(&error.to_string(), done, None)),
        },
    }
}

/// The bytes of input from which these jobs were made: each payload with its separator.
fn bytes_of(jobs: &[NewJob]) -> usize {
    jobs.iter().map(|job| job.payload.len() + 1).sum()
}

/// Pushes the jobs of one call. A first signal to stop does not cut the call off, so
/// that its result is known.
async fn send(
    sender: &Sender,
    jobs: &[NewJob],
    (unit, done): (Unit, usize),
) -> CommandResult<Vec<Pushed>> {
    tokio::select! {
        pushed = sender.send(jobs) => {
            pushed.map_err(|unsent| unsent.explain((unit, done), jobs.len()))
        }
        () = sender.interrupts().second() => {
            Err(unit.stopped("by a second signal", done, Some(jobs.len())))
        }
    }
}

/// The SHA-256 of a payload in hexadecimal, as `sha256sum` prints it, so that a user
/// can compute the key too.
fn payload_key(payload: &[u8]) -> CommandResult<UniqueKey> {
    let digest = Sha256::digest(payload);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    UniqueKey::new(hex).map_err(|error| Failure::Failed(error.to_string()))
}

impl Unsent {
    fn explain(&self, (unit, done): (Unit, usize), batch: usize) -> Failure {
        let unknown = (self.happened != Effect::No).then_some(batch);
        unit.stopped(&explain(&self.error), done, unknown)
    }
}
