//! `relq demo`: shows that killed workers lose no job.

mod batches;
mod judge;
mod own_queue;
mod queues;
mod record;
mod report;
mod schedules;
mod show;
mod worker;
mod worker_processes;

use std::{
    num::{NonZeroU8, NonZeroU16, NonZeroU32},
    path::Path,
    sync::Arc,
    time::Duration,
};

use relq::{NewJob, Stats, environment::Environment, error::RetryAdvice};
use tempfile::TempDir;

use crate::{
    failure::{CommandResult, Failure, explain},
    format::Format,
    interrupts::Interrupts,
    message::say,
    push::Sender,
    target::Target,
    values::{count, count_u8, count_u16, positive_duration},
};
use batches::Batches;
use judge::Judgement;
use own_queue::LOOK_EVERY;
use queues::DemoQueues;
use report::Report;
use schedules::ScheduleDemo;
use show::Show;
pub(crate) use worker::Args as WorkerArgs;
use worker_processes::WorkerProcesses;

/// The shortest and the longest time between two kills of a worker.
const KILL_EVERY: (Duration, Duration) =
    (Duration::from_millis(200), Duration::from_millis(450));

/// The demo fails if no job is finished for this long.
const PATIENCE: Duration = Duration::from_secs(20);

/// Show that no job is lost while workers are killed all the time
///
/// Pushes numbered jobs into a queue of its own, starts worker processes, kills one
/// with SIGKILL every few hundred milliseconds and starts another. Each worker records
/// the start and end of each job in its own file. At the end these files, not the
/// queue's counters, show whether a job was lost. Exits with 1 if a job was lost.
///
/// Runs on a temporary SQLite file unless --url or RELQ_URL names a store; the queue
/// is removed afterwards.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How many jobs to push
    #[arg(long, value_name = "N", value_parser = count, default_value = "10000")]
    jobs: NonZeroU32,

    /// How many worker processes run at once
    #[arg(long, value_name = "N", value_parser = count_u16, default_value = "4")]
    workers: NonZeroU16,

    /// Spread the jobs over this many queues, all of which each worker serves
    #[arg(long, value_name = "N", value_parser = count_u8, default_value = "1",
        conflicts_with = "batches")]
    queues: NonZeroU8,

    /// Let schedules push the jobs, ten a second, from schedulers that run in the workers'
    /// processes. Each tick must be pushed once
    #[arg(long, conflicts_with_all = ["jobs", "queues", "batches"])]
    schedules: bool,

    /// How long to kill the processes of --schedules
    #[arg(long, value_name = "DURATION", value_parser = positive_duration,
        requires = "schedules", default_value = "30s")]
    lasts: Duration,

    /// Make the jobs the pieces of two batches: a large one, and a small one that is
    /// submitted after it and more urgent. Each must complete once
    #[arg(long)]
    batches: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let folder = TempDir::with_prefix("relq-demo-").map_err(|error| {
            Failure::Failed(format!("no temporary folder can be made: {error}"))
        })?;
        let url = choose_url(target, folder.path())?;
        let interrupts = Interrupts::listen()?;
        let demo = Demo::open(&self, url, interrupts.clone()).await?;
        let is_clean = if self.schedules {
            let schedules = demo.schedules(&self);
            let playing = schedules.play(folder.path());
            let report = until_signal(playing, &interrupts).await;
            let removed = schedules.remove().await;
            demo.clean_up().await?;
            removed?;
            let report = report?;
            self.format.show(&report)?;
            report.is_clean()
        } else {
            let playing = demo.play(&self, folder.path());
            let report = until_signal(playing, &interrupts).await;
            demo.clean_up().await?;
            let report = report?;
            self.format.show(&report)?;
            report.is_clean()
        };
        if is_clean {
            return Ok(());
        }
        let folder = folder.keep();
        say(&format!("the workers' records are kept in {}", folder.display()));
        Err(Failure::Reported)
    }
}

/// The time from one kill of a worker to the next.
fn until_next_kill(environment: &Environment) -> Duration {
    let (least, most) = KILL_EVERY;
    least + (most - least).mul_f64(environment.random().fraction())
}

async fn until_signal<T>(
    playing: impl Future<Output = CommandResult<T>>,
    interrupts: &Interrupts,
) -> CommandResult<T> {
    tokio::select! {
        report = Box::pin(playing) => report,
        () = interrupts.first() => Err(Failure::Failed("stopped by a signal".into())),
    }
}

fn choose_url(target: &Target, folder: &Path) -> CommandResult<String> {
    match target.given_url()? {
        Some(url) if url.starts_with("sqlite::memory:") => Err(Failure::Usage(
            "the demo's workers are processes of their own, which share no memory: \
             choose another --url"
                .to_owned(),
        )),
        Some(url) => Ok(url),
        None => Ok(format!("sqlite:{}", folder.join("demo.db").display())),
    }
}

/// The settings and the queues of a running demo.
struct Demo {
    url: String,
    queues: DemoQueues,
    jobs: u64,
    batches: Option<Batches>,
    environment: Environment,
    interrupts: Interrupts,
}

impl Demo {
    async fn open(
        args: &Args,
        url: String,
        interrupts: Interrupts,
    ) -> CommandResult<Self> {
        let environment = Environment::default();
        let name = format!("relq-demo-{}", environment.random().text(12));
        let queues = DemoQueues::open(&url, &name, args.queues.get().into()).await?;
        let jobs = args.jobs.get().into();
        let batches = if args.batches {
            let size = (jobs, args.workers.get());
            let (name, queue) = queues.first();
            Some(Batches::new(Arc::clone(queue), &url, name, size).await?)
        } else {
            None
        };
        Ok(Self { url, queues, jobs, batches, environment, interrupts })
    }

    async fn play(&self, args: &Args, folder: &Path) -> CommandResult<Report> {
        let show = Show::start(self.jobs, self.queues.first().1);
        self.push().await?;
        let clock = self.environment.clock();
        let began = clock.elapsed();
        let size = usize::from(args.workers.get());
        let mut worker_processes = WorkerProcesses::start(
            (size, false),
            &self.url,
            self.queues.names(),
            folder,
        )?;
        self.kill_until_empty(&mut worker_processes, &show).await?;
        let took = clock.elapsed() - began;
        let evidence = worker_processes.dismiss().await?;
        let mut judgement = judge::judge(self.jobs, &evidence);
        let batches = match &self.batches {
            Some(batches) => batches.judge(&mut judgement.problems).await?,
            None => Vec::new(),
        };
        self.compare_with_queue(&mut judgement).await?;
        show.end();
        Ok(Report::new(self.jobs, took, judgement, batches))
    }

    fn schedules(&self, args: &Args) -> ScheduleDemo<'_> {
        ScheduleDemo {
            url: &self.url,
            queues: &self.queues,
            workers: args.workers.get().into(),
            lasts: args.lasts,
            environment: &self.environment,
        }
    }

    async fn push(&self) -> CommandResult {
        let sender = |queue| Sender::new(Arc::clone(queue), self.interrupts.clone());
        let first = self.queues.first().1;
        if let Some(batches) = &self.batches {
            return batches.submit(&sender(first)).await;
        }
        let senders: Vec<_> = self.queues.queues().map(sender).collect();
        let most = u64::from(first.capabilities().limits.max_jobs_per_call.get());
        let batch = most.min(self.jobs.div_ceil(senders.len() as u64));
        let mut from = 0;
        for sender in senders.iter().cycle() {
            if from == self.jobs {
                break;
            }
            let to = self.jobs.min(from + batch);
            let jobs: Vec<_> = (from..to).map(|n| NewJob::new(n.to_string())).collect();
            let pushed = sender.send(&jobs).await;
            pushed.map_err(|unsent| Failure::Failed(explain(&unsent.error)))?;
            from = to;
        }
        Ok(())
    }

    /// Kills a worker every few hundred milliseconds while jobs wait. Returns when the
    /// queues have no job left.
    async fn kill_until_empty(
        &self,
        worker_processes: &mut WorkerProcesses,
        show: &Show,
    ) -> CommandResult {
        let clock = self.environment.clock();
        let mut kill_at = clock.elapsed() + until_next_kill(&self.environment);
        let mut progress = Progress { finished: 0, at: clock.elapsed() };
        let mut is_away = false;
        loop {
            clock.sleep(LOOK_EVERY).await;
            worker_processes.check()?;
            let now = clock.elapsed();
            progress.check(now)?;
            let Some(stats) = self.look(&mut is_away).await? else { continue };
            show.update(&stats, worker_processes.kills());
            progress.note(&stats, now);
            if stats.unfinished() == 0 {
                return Ok(());
            }
            if now >= kill_at && stats.ready > 0 {
                worker_processes.kill_one(&self.environment).await?;
                kill_at = now + until_next_kill(&self.environment);
            }
        }
    }

    /// Reads the queues' statistics. `None` if the store is unavailable at the moment.
    /// Logs when the store goes away and when it works again, and not in between.
    async fn look(&self, is_away: &mut bool) -> CommandResult<Option<Stats>> {
        match self.queues.stats().await {
            Ok(stats) => {
                if std::mem::replace(is_away, false) {
                    tracing::warn!("the store works again");
                }
                Ok(Some(stats))
            }
            Err(error) if error.retry_advice() == RetryAdvice::Never => {
                Err(error.into())
            }
            Err(error) => {
                if !std::mem::replace(is_away, true) {
                    tracing::warn!("{}; looking again", error.full_message());
                }
                Ok(None)
            }
        }
    }

    /// Compares the queues' statistics with the workers' records. If they disagree,
    /// adds a problem to the judgement.
    async fn compare_with_queue(&self, judgement: &mut Judgement) -> CommandResult {
        let stats = self.queues.stats().await?;
        if stats.finished != self.jobs || stats.dead != 0 {
            let Stats { finished, dead, .. } = stats;
            let problem =
                format!("the queue counts {finished} finished and {dead} dead");
            judgement.problems.push(problem);
        }
        let (jobs, problems) = self.queues.audit().await?;
        if jobs != 0 {
            judgement.problems.push(format!("the audit finds {jobs} jobs left"));
        }
        judgement.problems.extend(problems);
        Ok(())
    }

    async fn clean_up(&self) -> CommandResult {
        self.queues.remove(&self.url).await?;
        match &self.batches {
            Some(batches) => batches.clean_up(&self.url).await,
            None => Ok(()),
        }
    }
}

/// The number of finished jobs, and the time when it last grew.
struct Progress {
    finished: u64,
    at: Duration,
}

impl Progress {
    fn note(&mut self, stats: &Stats, now: Duration) {
        if stats.finished > self.finished {
            *self = Self { finished: stats.finished, at: now };
        }
    }

    fn check(&self, now: Duration) -> CommandResult {
        if now - self.at <= PATIENCE {
            return Ok(());
        }
        let (finished, seconds) = (self.finished, PATIENCE.as_secs());
        Err(Failure::Failed(format!(
            "no job was finished for {seconds} s, after {finished} that were"
        )))
    }
}
