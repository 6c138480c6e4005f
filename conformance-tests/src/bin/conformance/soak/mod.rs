//! The soak: jobs flow while processes are killed, and the processes' records judge it.
//!
//! ```text
//!  producers ── push with tokens ──> store ── claim, settle ──> workers
//!     │                                ▲                           │
//!     └ pushes begun, and their        │ SIGKILL, restart          └ each start,
//!       results ──> records            │                             failure, end
//!                                   this process                     ──> records
//! ```
//!
//! All processes except this one are children that get SIGKILL at random moments:
//! workers, producers, and the Redis server, which must recover from its append-only
//! file (`appendfsync always`) alone. It then writes the file anew, as
//! `docs/operations.md` asks of operators. If a producer is killed before a push returns,
//! its successor makes the same call with the same token (R4).
//!
//! The judgement uses the records, which do not go through the queue.

mod batches;
mod child;
mod deployment;
mod judge;
mod kill_schedule;
mod operator;
mod orders;
mod plan;
mod processes;
mod producer;
mod record;
mod report;
mod several;
mod site;
mod worker;

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use relq_core::{
    Error, Queue, QueueName, environment::Environment, error::RetryAdvice,
};
use tempfile::TempDir;

use crate::{SuiteResult, backend::Backend};
pub(crate) use batches::Args as BatchArgs;
pub(crate) use batches::WorkerArgs as BatchWorkerArgs;
use deployment::{FaultSchedule, Kind};
use judge::{Exposure, Judgement, LEAST_JOBS, TooFew};
use kill_schedule::{KillSchedule, Kills, Pace};
use orders::RandomOrders;
use processes::{PRODUCERS, Processes};
pub(crate) use producer::Args as ProducerArgs;
use report::Report;
use several::Several;
use site::Site;
pub(crate) use worker::Args as WorkerArgs;

/// The time between two checks of the processes and the queue.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The name of the queue.
const QUEUE: &str = "soak";

/// The soak fails if no job ends for this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Let jobs flow under kill -9, and prove that none was lost
///
/// Producers, workers and, for a backend on Redis, the server itself are processes
/// that are killed with SIGKILL at random. On several servers, these are killed, frozen,
/// cut off and restarted, one fault at a time. On one store, large scenes of a few actors
/// are played meanwhile in random orders of their commands. Exits with 1 when a promise was broken.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The backend
    #[arg(long, value_enum)]
    backend: Backend,

    /// How long jobs flow; the queue is drained afterwards
    #[arg(long, value_name = "N", default_value = "30")]
    seconds: NonZeroU64,

    /// The number of worker processes
    #[arg(long, value_name = "N", default_value = "4")]
    workers: std::num::NonZeroU16,

    /// Spread the jobs over this many queues, all of which each worker serves. A queue of
    /// keyspace needs a database of its own, so there is no second one
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        conflicts_with = "several",
        value_parser = clap::value_parser!(u8).range(1..=PRODUCERS as i64)
    )]
    queues: u8,

    /// Let each worker claim this many jobs before a handler is free for them
    #[arg(long, value_name = "N", conflicts_with_all = ["queues", "several"])]
    prefetch: Option<std::num::NonZeroU32>,

    /// Run on a Redis Cluster of three masters with a replica each, which the soak
    /// starts. Needs Linux
    #[arg(long, group = "several")]
    cluster: bool,

    /// Run on a master with two replicas and three sentinels, which the soak starts.
    /// Needs Linux
    #[arg(long, group = "several")]
    sentinel: bool,

    /// How many replicas confirm each push and settlement. With 0, jobs that a fail-over
    /// lost are counted, and are no failure
    #[arg(long, value_name = "N", default_value = "1", requires = "several")]
    replicas: u32,

    /// The number of the queue's parts, each of which is on one server
    #[arg(long, value_name = "N", default_value = "1")]
    partitions: std::num::NonZeroU16,

    /// Draw from this seed what a soak can repeat: the faults of several servers, and on
    /// one store the random orders of commands that are played beside the jobs
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) async fn run(self) -> SuiteResult<bool> {
        let folder = TempDir::with_prefix("relq-soak-")?;
        let (backend, options) = (self.backend, self.options());
        let site = match self.servers() {
            Some(kind) => {
                Site::open_several(kind, backend, &options, &self.names_of_parts())?
            }
            None => Site::open(backend, &options, folder.path())?,
        };
        let soak = Soak::open(site, self.queues).await?;
        let report = soak.play(&self, &folder).await?;
        report.print(self.json)?;
        if !report.is_clean() {
            let folder = folder.keep();
            eprintln!("conformance: the records are kept in {}", folder.display());
        }
        Ok(report.is_clean())
    }

    /// The kind of several servers, if the soak runs on such.
    fn servers(&self) -> Option<Kind> {
        match (self.cluster, self.sentinel) {
            (true, _) => Some(Kind::Cluster),
            (_, true) => Some(Kind::Sentinel),
            _ => None,
        }
    }

    /// The options of the queue's URL.
    fn options(&self) -> Vec<String> {
        let replicas = self.servers().is_some() && self.replicas > 0;
        let replicas = replicas.then(|| format!("replicas={}", self.replicas));
        let partitions = self.partitions.get();
        let partitions = (partitions > 1).then(|| format!("partitions={partitions}"));
        replicas.into_iter().chain(partitions).collect()
    }

    /// The names of the queue's parts, of which the first is the name of the queue.
    fn names_of_parts(&self) -> Vec<String> {
        let others = (1..self.partitions.get()).map(|part| format!("{QUEUE}:{part}"));
        std::iter::once(QUEUE.to_owned()).chain(others).collect()
    }

    /// How many jobs can be repeated when one worker is killed: those of its handlers, and
    /// those that have ended since the last settlement.
    fn held(&self) -> u64 {
        let prefetched = self.prefetch.map_or(0, std::num::NonZeroU32::get);
        u64::from(worker::SLOTS.get() + prefetched)
    }

    /// The schedule of the servers' faults.
    fn schedule(&self) -> FaultSchedule {
        let seed = self.printed_seed("the faults");
        FaultSchedule { seed, length: Duration::from_secs(self.seconds.get()) }
    }

    /// Begins to play random orders on a store of their own. `None` on several servers,
    /// whose faults have limits of time that this work would break on a small machine.
    fn random_orders(&self) -> SuiteResult<Option<RandomOrders>> {
        if self.servers().is_some() {
            return Ok(None);
        }
        let seed = self.printed_seed("the orders of commands");
        RandomOrders::start(self.backend.subject(), seed).map(Some)
    }

    /// The seed of the command line or a random one.
    fn printed_seed(&self, drawn: &str) -> u64 {
        let seed = self.seed.unwrap_or_else(rand::random);
        eprintln!("conformance: {drawn} are drawn from --seed {seed}");
        seed
    }
}

/// A soak while it runs: its store, its queues and its clock.
struct Soak {
    site: Site,
    names: Vec<QueueName>,
    queues: Vec<Arc<dyn Queue>>,
    environment: Environment,
}

impl Soak {
    async fn open(site: Site, count: u8) -> SuiteResult<Self> {
        let (mut names, mut queues) = (Vec::new(), Vec::new());
        for number in 1..=count {
            let name =
                if number == 1 { QUEUE.into() } else { format!("{QUEUE}-{number}") };
            let name = QueueName::new(name)?;
            queues.push(relq::connect(site.url(), &name).await?);
            names.push(name);
        }
        Ok(Self { site, names, queues, environment: Environment::default() })
    }

    async fn play(mut self, args: &Args, folder: &TempDir) -> SuiteResult<Report> {
        let workers = usize::from(args.workers.get());
        let url = self.site.url().to_owned();
        let mut processes =
            Processes::start(workers, args.prefetch, &url, &self.names, folder.path())?;
        let schedule = || args.schedule();
        let several =
            Several::begin(&mut self.site, &self.names[0], schedule, &self.environment)
                .await?;
        let orders = args.random_orders()?;
        let kills = self.let_jobs_flow(args, &mut processes, several.as_ref()).await?;
        // The servers run until all has been judged.
        let (_deployment, exposure) = match several {
            Some(several) => {
                let (deployment, faults) = several.end().await?;
                let workers = args.workers.get().into();
                let exposure = Exposure { faults, workers, replicas: args.replicas };
                (Some(deployment), Some(exposure))
            }
            None => (None, None),
        };
        processes.end_producers()?;
        let played = orders.map(RandomOrders::end).transpose()?;
        self.drain(&mut processes).await?;
        let evidence = processes.end_workers()?;
        let mut judgement = Judgement::of(&evidence, kills, args.held(), exposure);
        judgement.add(played);
        judgement.compare_with(&self.queues).await?;
        judgement.refuse_too_few(TooFew::of(self.site.has_server()));
        Ok(Report::new(args, judgement))
    }

    /// Kills processes until the time of the soak is over, or on several servers, until
    /// their faults are over, and until there are enough jobs to judge.
    async fn let_jobs_flow(
        &mut self,
        args: &Args,
        processes: &mut Processes,
        several: Option<&Several>,
    ) -> SuiteResult<Kills> {
        let pace = if several.is_some() { Pace::SLOW } else { Pace::FAST };
        let mut kill_schedule = KillSchedule::new(self.environment.clone(), pace);
        let length = Duration::from_secs(args.seconds.get());
        let end = self.environment.clock().elapsed() + length;
        let is_over = |now| several.map_or(now >= end, Several::is_over);
        loop {
            let now = self.environment.clock().elapsed();
            // On a busy machine, fewer jobs run in the same time.
            if is_over(now) && (now >= end + PATIENCE || self.has_enough_jobs().await?)
            {
                break;
            }
            self.environment.clock().sleep(LOOK_EVERY).await;
            processes.check()?;
            kill_schedule.kill_if_due(processes, &mut self.site).await?;
        }
        Ok(kill_schedule.count())
    }

    /// Waits until the workers have finished all jobs.
    async fn drain(&self, processes: &mut Processes) -> SuiteResult<()> {
        let clock = self.environment.clock();
        let (mut ended, mut since) = (0, clock.elapsed());
        loop {
            clock.sleep(LOOK_EVERY).await;
            processes.check()?;
            let now = clock.elapsed();
            if let Some(left) = unless_away(self.left().await)? {
                if left.unfinished == 0 {
                    return Ok(());
                }
                if left.ended > ended {
                    (ended, since) = (left.ended, now);
                }
            }
            if now > since + PATIENCE {
                return Err(self.stuck(ended).await.into());
            }
        }
    }

    async fn has_enough_jobs(&self) -> SuiteResult<bool> {
        let left = unless_away(self.left().await)?;
        Ok(left.is_some_and(|left| left.ended + left.unfinished >= LEAST_JOBS))
    }

    /// How many jobs of all queues have ended, and how many have not.
    async fn left(&self) -> Result<Left, Error> {
        let mut left = Left { ended: 0, unfinished: 0 };
        for queue in &self.queues {
            let stats = queue.stats().await?;
            left.ended += stats.finished + stats.dead;
            left.unfinished += stats.unfinished();
        }
        Ok(left)
    }

    /// The message of a soak whose jobs do not end any more.
    async fn stuck(&self, ended: u64) -> String {
        let seconds = PATIENCE.as_secs();
        let mut words =
            format!("no job ended for {seconds} s; before that, {ended} ended:");
        for queue in &self.queues {
            let (stats, audit) = (queue.stats().await, queue.audit().await);
            words.push_str(&format!(" {stats:?}, {audit:?}"));
        }
        words
    }
}

/// The jobs of all queues of a soak.
struct Left {
    ended: u64,
    unfinished: u64,
}

/// The result of a call. `None` if the store cannot be reached for a moment.
fn unless_away<T>(answer: Result<T, Error>) -> SuiteResult<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.retry_advice() == RetryAdvice::Safe => Ok(None),
        Err(error) => Err(error.full_message().into()),
    }
}
