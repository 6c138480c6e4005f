//! `relq work`: runs a command on each job.

mod cannot_start;
mod command;
mod forward;
mod group;
mod guard;
mod guards;
mod health;
mod outcome;
mod payload;
mod program;
mod queues;
mod result_bytes;
mod retry;
mod schedules;
#[cfg(feature = "redis")]
mod server_check;
mod stderr_tail;
mod summary;
mod whole_lines;

use std::{ffi::OsString, net::SocketAddr, num::NonZeroU32, sync::Arc, time::Duration};

use relq::worker::{
    DEFAULT_CONCURRENCY, DEFAULT_GRACE, DEFAULT_LEASE, RetryPolicy, Summary, Worker,
    WorkerError,
};
use tokio::sync::Mutex;

use crate::{
    failure::{CommandResult, Failure, explain},
    interrupts::Interrupts,
    message::say,
    store_url,
    target::{Credentials, Target},
    values::{address, count, duration, positive_duration},
};
use cannot_start::CannotStart;
use command::{JobCommand, OutputLines};
pub(crate) use guard::{Args as GuardArgs, run as run_guard};
use guards::Guards;
use health::Health;
use outcome::DeadBefore;
use program::Program;
use queues::{OpenQueues, ServedQueue, ServingOrder};
use retry::retry_policy;
pub(crate) use schedules::Schedulers;
use summary::say_summary;

/// Run a command on each job
///
/// The command receives the payload on standard input, and RELQ_ID, RELQ_ATTEMPT,
/// RELQ_HEADERS (a JSON object), RELQ_URL, RELQ_QUEUE, RELQ_ENQUEUED_AT_MS (the time of
/// the push, in milliseconds since 1970) and, for a piece of a batch, RELQ_BATCH in its
/// environment. When it exits with 0 the job is done. When it fails, the job is retried
/// later, up to its number of attempts, and the end of the command's standard error is
/// kept as its last error. After the last attempt it becomes a dead job (`relq dead
/// list`).
///
/// The output of the command goes to the output of relq. Several commands run at once,
/// so their lines are printed whole: a last line without a newline gets one, and a line
/// of more than 64 KiB is cut into pieces. With --concurrency 1 and without --tag the
/// output is unchanged.
///
/// The output of a command that succeeds is also the result of its job, if the job was
/// pushed with --keep-result. It may have at most 1 MiB; more buries the job.
///
/// A `relq push` in the command uses the store and the queue of its job, also from
/// another folder. RELQ_URL does not contain the password of the store, unless
/// --pass-credentials is given. A relq call in the command that needs the password
/// fails and says so. A better way is a file that holds the password: when relq is
/// started with the file's name in RELQ_PASSWORD_FILE, the command inherits the name. A
/// password on the command line of relq itself, in --url, can be read by all users of
/// the machine.
///
/// With --serve, one worker serves several queues of the store, and --queue has no effect.
/// The commands of all queues together are at most --concurrency. RELQ_QUEUE is the queue
/// of the job.
///
/// The command runs in a process group of its own. The whole group gets SIGTERM, and is
/// killed a second later, when the job's lease is lost, the job is cancelled, its time
/// limit passes, or relq itself is killed with SIGKILL. If --grace is shorter than a second, a
/// lost lease or a cancellation leaves the group that time only. On a hard stop it is killed at
/// once. relq does not stop a process that the command moves to another group or session, as
/// `setsid` does, nor a process that still runs after the command has ended by itself.
///
/// SIGHUP, SIGINT (Ctrl-C), SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2 and SIGXCPU
/// stop the worker gracefully: running commands have 25 seconds, or the time of --grace, to
/// finish. Then, or at a second SIGINT, SIGQUIT or SIGTERM, they are killed and their jobs
/// given back. A SIGHUP that is ignored when relq starts, as under `nohup`, stays ignored.
#[derive(clap::Args, Debug)]
#[command(override_usage = USAGE, after_help = EXEC_HELP)]
pub(crate) struct Args {
    /// The command, with its arguments up to the next relq flag
    #[arg(long, value_name = "CMD", num_args = 0..)]
    exec: Vec<OsString>,

    /// How many commands run at once
    #[arg(
        short,
        long,
        value_name = "N",
        value_parser = count,
        default_value_t = DEFAULT_CONCURRENCY
    )]
    concurrency: NonZeroU32,

    /// Serve this queue instead of --queue; repeat it for each queue. While all have jobs,
    /// the jobs that start are in proportion to the weights [default weight: 1]
    #[arg(long, value_name = "NAME[=WEIGHT]")]
    serve: Vec<ServedQueue>,

    /// Serve the queues of --serve in their order: a queue gets a command only when the
    /// queues before it have no ready job
    #[arg(long, requires = "serve")]
    strict: bool,

    /// Push the jobs of the schedules of these queues, too, as `relq cron run` does
    #[arg(long, conflicts_with = "until_empty")]
    schedules: bool,

    /// Begin each line of output with the id of its job and a tab
    #[arg(long)]
    tag: bool,

    /// How long a job is held without a heartbeat [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    lease: Option<Duration>,

    /// How long a command may take [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    timeout: Option<Duration>,

    /// How long a failed job waits for its next attempt: up to FIRST after the first
    /// attempt, twice as long after each, and at most MOST [default: 1s..1h]
    #[arg(long, value_name = "FIRST[..MOST]", value_parser = retry_policy)]
    retry: Option<RetryPolicy>,

    /// How long running commands may take to end when the worker is stopped [default:
    /// 25s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    grace: Option<Duration>,

    /// Answer probes over HTTP at this address, such as 127.0.0.1:8080: /live while the
    /// program answers, and /ready while the worker reaches its store and was not stopped
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    health: Option<SocketAddr>,

    /// End when no job is ready or leased, and no job becomes due within --max-wait; the
    /// exit code says what became of the jobs
    #[arg(long)]
    until_empty: bool,

    /// How long to wait for scheduled jobs and retries [default: 0s]
    #[arg(
        long,
        value_name = "DURATION",
        requires = "until_empty",
        value_parser = duration
    )]
    max_wait: Option<Duration>,

    /// Keep the password in the URL that the command receives
    #[arg(long)]
    pass_credentials: bool,

    /// Words after two dashes, which all belong to the command, also those that look
    /// like flags. Without --exec they are the whole command
    #[arg(last = true, value_name = "CMD")]
    more: Vec<OsString>,
}

const USAGE: &str = "\
relq work [OPTIONS] -- <CMD> [ARG]...
       relq work [OPTIONS] --exec <CMD> [ARG]... [OPTIONS] [-- <ARG>...]";

const EXEC_HELP: &str = "\
All words after `--` are the command's. The words after --exec are, up to the next word
that begins with two dashes, or -q, so that options of relq may follow:
  relq work --concurrency 8 -- curl -fsS --data @- http://localhost/in
  relq work --concurrency 8 --until-empty -- sh -c 'cat; echo'
  relq work --exec sh -c 'cat; echo' --concurrency 8 --until-empty

With --until-empty the exit code is 0 when all jobs are done, 3 when jobs died during the
run, whichever worker buried them, and 4 when jobs are left: they wait for another try or
for their time, or a signal stopped the worker. Jobs that were dead before do not count.";

impl Args {
    pub(crate) async fn run(mut self, target: &Target) -> CommandResult {
        let program = self.program()?;
        let queues = self.open(target).await?;
        let schedulers = self.schedulers(&queues)?;
        let health = self.listen_for_probes().await?;
        let interrupts = Interrupts::listen()?;
        let cannot_start = CannotStart::default();
        let command = Arc::new(self.command(program, target, cannot_start.clone())?);
        let worker = self.worker(&queues, &interrupts);
        let worker = worker.halt_on(cannot_start.clone().told());
        let worker = worker.stop_on(schedulers.ended());
        let progress = worker.progress();
        if let Some(health) = health {
            health.answer_from(progress.clone());
        }
        let handler = move |job| {
            let command = Arc::clone(&command);
            async move { command.run(job).await }
        };
        let mut before = None;
        let ended = if self.until_empty {
            before = Some(DeadBefore::of(&queues).await?);
            let max_wait = self.max_wait.unwrap_or_default();
            let operators = queues.operators();
            Box::pin(worker.run_until_all_empty(operators, max_wait, handler)).await
        } else {
            Box::pin(worker.run(handler)).await
        };
        if has_summary(&ended) {
            say_summary(&progress.summary());
        }
        if let Some(message) = cannot_start.message().or_else(|| schedulers.message()) {
            return Err(Failure::Failed(message));
        }
        let summary = ended.map_err(|error| explain_worker(error, &queues))?;
        match before {
            Some(before) => before.judge(&queues, summary.dead).await,
            None => Ok(()),
        }
    }

    /// Prints what an operator should know of the server, once for all queues.
    #[cfg(feature = "redis")]
    async fn warn_of_the_server(&self, target: &Target) {
        if let Some(served) = self.served(target).first() {
            server_check::warn(target, &served.name).await;
        }
    }

    async fn listen_for_probes(&self) -> CommandResult<Option<Health>> {
        match self.health {
            Some(address) => Ok(Some(Health::listen(address).await?)),
            None => Ok(None),
        }
    }

    /// Opens the queues. A worker may start before the first producer, so it creates a
    /// store that does not exist. With --until-empty it does not: a store without jobs
    /// is probably the wrong one.
    async fn open(&self, target: &Target) -> CommandResult<OpenQueues> {
        if !self.until_empty {
            say_missing_file(target)?;
        }
        let mut queues = Vec::new();
        for served in self.served(target) {
            let queue = if self.until_empty {
                target.open_existing_named(&served.name).await?
            } else {
                target.open_named(&served.name).await?
            };
            queues.push((served, queue));
        }
        #[cfg(feature = "redis")]
        self.warn_of_the_server(target).await;
        Ok(OpenQueues::new(queues))
    }

    /// The queues of `--serve`, or else the queue of `--queue`.
    fn served(&self, target: &Target) -> Vec<ServedQueue> {
        if self.serve.is_empty() {
            return vec![ServedQueue::of_weight_one(target.queue.clone())];
        }
        self.serve.clone()
    }

    fn schedulers(&self, queues: &OpenQueues) -> CommandResult<Schedulers> {
        if self.schedules {
            Schedulers::start(queues.all())
        } else {
            Ok(Schedulers::default())
        }
    }

    fn order(&self) -> ServingOrder {
        if self.strict { ServingOrder::Strict } else { ServingOrder::ByWeight }
    }

    fn output_lines(&self) -> OutputLines {
        match (self.tag, self.concurrency.get()) {
            (true, _) => OutputLines::Tagged,
            (false, 1) => OutputLines::Unchanged,
            (false, _) => OutputLines::Whole,
        }
    }

    fn credentials(&self) -> Credentials {
        if self.pass_credentials { Credentials::PassOn } else { Credentials::LeaveOut }
    }

    fn command(
        &self,
        program: Program,
        target: &Target,
        cannot_start: CannotStart,
    ) -> CommandResult<JobCommand> {
        let credentials = self.credentials();
        Ok(JobCommand {
            program,
            environment: target
                .environment(&self.served(target)[0].name, credentials)?,
            timeout: self.timeout,
            output_lines: self.output_lines(),
            cannot_start,
            guards: Arc::new(Guards::default()),
            shortage: Mutex::default(),
        })
    }

    fn program(&mut self) -> CommandResult<Program> {
        let mut words = std::mem::take(&mut self.exec);
        words.append(&mut self.more);
        Program::find(words)
    }

    fn worker(&self, queues: &OpenQueues, interrupts: &Interrupts) -> Worker {
        let (first, second) = (interrupts.clone(), interrupts.clone());
        let grace = self.grace.unwrap_or(DEFAULT_GRACE);
        queues
            .worker(self.order())
            .concurrency(self.concurrency)
            .lease(self.lease.unwrap_or(DEFAULT_LEASE))
            .retry(self.retry.unwrap_or_default())
            .grace(grace)
            .stop_on(async move {
                first.first().await;
                say_stopping(grace);
            })
            .halt_on(async move { second.second().await })
    }
}

/// Whether to print the counts of the worker: it was stopped, found its queues empty, or was
/// ended by one of them.
fn has_summary(ended: &Result<Summary, WorkerError>) -> bool {
    matches!(
        ended,
        Ok(_)
            | Err(WorkerError::Paused
                | WorkerError::Store(_)
                | WorkerError::Queue { .. })
    )
}

fn say_missing_file(target: &Target) -> CommandResult {
    if let Some(file) = store_url::missing_file(&target.url()?) {
        let file = file.display();
        say(&format!(
            "relq: {file} does not exist: the worker creates it and waits for jobs"
        ));
    }
    Ok(())
}

fn explain_worker(error: WorkerError, queues: &OpenQueues) -> Failure {
    match error {
        WorkerError::Paused => Failure::Failed(queues.say_paused()),
        WorkerError::Claim(error) | WorkerError::Store(error) => {
            Failure::Failed(explain(&error))
        }
        WorkerError::Queue { queue, source } => match explain_worker(*source, queues) {
            Failure::Failed(why) => {
                Failure::Failed(format!("the queue {queue}: {why}"))
            }
            other => other,
        },
        WorkerError::Setting(error) => Failure::Usage(error.to_string()),
        other => match std::error::Error::source(&other) {
            Some(cause) => Failure::Failed(format!("{other}: {cause}")),
            None => Failure::Failed(other.to_string()),
        },
    }
}

fn say_stopping(grace: Duration) {
    let grace = humantime::format_duration(grace);
    say(&format!(
        "relq: stopping; running commands have {grace} to end, a second signal kills them"
    ));
}
