//! The batch soak: two batches of unequal size and priority, while workers and a server
//! are killed. No client waits for the completions.
//!
//! ```text
//!  this process ── create, add, seal: big (low), small (high) ──> store
//!        │                                                          ▲
//!        ├ SIGKILL, restart ──> 8 workers ── pieces, completions ───┤
//!        └ SIGKILL, restart ────────────────────────────────────────┘
//!                                   └ each start and end ──> records
//! ```
//!
//! Three sources judge the soak: the records, the queue's own counters, which count
//! each job once, and the status of both batches, which is read throughout the run (B2,
//! B3).

mod runs;
mod worker;

use std::{
    num::{NonZeroU16, NonZeroU32},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use relq_core::{
    NewJob, Queue, QueueName,
    batch::{
        BatchId, BatchOutcome, BatchPriority, BatchQueue, BatchStatus, NewBatch,
        OnComplete,
    },
    environment::{Clock, Environment, Timestamp},
};
use tempfile::TempDir;

use runs::Runs;
pub(crate) use worker::Args as WorkerArgs;

use super::{child::Process, record, site::Site, unless_away};
use crate::{SuiteResult, backend::Backend};

/// The time between two readings of the batches' status.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The time between two kills.
const KILL_EVERY: Duration = Duration::from_millis(150);

/// The soak fails if both batches have not completed within this time.
const PATIENCE: Duration = Duration::from_secs(120);

/// One of this many kills hits the server, if there is one.
const SERVER_IN: u64 = 4;

/// How long a server is down: shorter than a lease, so that no worker loses its pieces
/// because of an outage, and the bound on repeated runs holds.
const OUTAGE: Duration = Duration::from_millis(100);

/// The soak fails if fewer workers were killed, because it has then tested too little.
const FEWEST_KILLS: u64 = 5;

/// The number of pieces that one call adds.
const AT_ONCE: usize = 500;

/// A batch that the soak submits.
struct Request {
    name: &'static str,
    /// The number of the batch's first piece. The others follow it.
    first: u64,
    pieces: u64,
    limit: u32,
    level: u8,
    /// The number of the batch's completion job.
    completion: u64,
}

const REQUESTS: [Request; 2] = [
    Request {
        name: "big",
        first: 0,
        pieces: 1200,
        limit: 3,
        level: 20,
        completion: 9_000_000,
    },
    Request {
        name: "small",
        first: 1_000_000,
        pieces: 90,
        limit: 2,
        level: 80,
        completion: 9_000_001,
    },
];

/// Kill workers during two batches, and prove that each batch completes once
///
/// Exits with 1 when a promise was broken.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The backend
    #[arg(long, value_enum)]
    backend: Backend,

    /// The number of worker processes
    #[arg(long, value_name = "N", default_value = "8")]
    workers: NonZeroU16,
}

impl Args {
    pub(crate) async fn run(self) -> SuiteResult<bool> {
        let folder = TempDir::with_prefix("relq-batches-")?;
        let site = Site::open(self.backend, &[], folder.path())?;
        let name = QueueName::new("soak")?;
        let queue = relq::connect(site.url(), &name).await?;
        let processes = Processes::new(site.url(), name, folder.path().to_owned());
        let mut soak = Soak { site, queue, processes, wrong: Vec::new() };
        let kills = soak.play(usize::from(self.workers.get())).await?;
        soak.judge(kills).await?;
        for wrong in &soak.wrong {
            println!("{wrong}");
        }
        let Kills { workers, servers } = kills;
        let broken = soak.wrong.len();
        println!(
            "killed: {workers} workers, {servers} servers; {broken} promises broken"
        );
        Ok(soak.wrong.is_empty())
    }
}

/// The worker processes, and the file of records of each.
struct Processes {
    url: String,
    queue: QueueName,
    folder: PathBuf,
    running: Vec<Process>,
    records: Vec<PathBuf>,
}

impl Processes {
    fn new(url: &str, queue: QueueName, folder: PathBuf) -> Self {
        let (running, records) = (Vec::new(), Vec::new());
        Self { url: url.to_owned(), queue, folder, running, records }
    }

    fn start(&mut self) -> SuiteResult<()> {
        let records = self.folder.join(format!("{}.records", self.records.len()));
        let arguments = [("--records", records.as_ref())];
        let command = "soak-batch-worker";
        let queue = std::slice::from_ref(&self.queue);
        let worker = Process::start(command, &self.url, queue, &arguments)?;
        self.running.push(worker);
        self.records.push(records);
        Ok(())
    }

    /// Kills the worker that has run longest, and starts another.
    fn kill_one(&mut self) -> SuiteResult<()> {
        self.running.remove(0).kill()?;
        self.start()
    }
}

/// How many processes were killed, by kind.
#[derive(Default, Clone, Copy)]
struct Kills {
    workers: u64,
    servers: u64,
}

struct Soak {
    site: Site,
    queue: Arc<dyn Queue>,
    processes: Processes,
    wrong: Vec<String>,
}

impl Soak {
    fn batches(&self) -> SuiteResult<&dyn BatchQueue> {
        self.queue.batch_queue().ok_or_else(|| "the backend has no batches".into())
    }

    /// Kills processes until both batches have completed and all their jobs have run.
    async fn play(&mut self, workers: usize) -> SuiteResult<Kills> {
        for request in &REQUESTS {
            self.submit(request).await?;
        }
        for _ in 0..workers {
            self.processes.start()?;
        }
        let environment = Environment::default();
        let clock = environment.clock();
        let (began, mut next) = (clock.elapsed(), KILL_EVERY);
        let mut kills = Kills::default();
        while !self.have_all_ended().await? {
            clock.sleep(LOOK_EVERY).await;
            let passed = clock.elapsed().saturating_sub(began);
            if passed > PATIENCE {
                return Err(format!(
                    "the batches did not complete within {PATIENCE:?}"
                )
                .into());
            }
            if passed > next {
                self.kill_one(&mut kills, clock).await?;
                next = passed + KILL_EVERY;
            }
        }
        for worker in self.processes.running.drain(..) {
            worker.end()?;
        }
        Ok(kills)
    }

    async fn kill_one(
        &mut self,
        kills: &mut Kills,
        clock: &dyn Clock,
    ) -> SuiteResult<()> {
        let is_servers_turn = (kills.workers + kills.servers) % SERVER_IN == 1;
        match self.site.server() {
            Some(server) if is_servers_turn => {
                server.kill();
                clock.sleep(OUTAGE).await;
                server.restart();
                kills.servers += 1;
            }
            _ => {
                self.processes.kill_one()?;
                kills.workers += 1;
            }
        }
        Ok(())
    }

    async fn submit(&self, request: &Request) -> SuiteResult<()> {
        let batch = BatchId::new(request.name)?;
        let told = NewJob::new(request.completion.to_string());
        let level = BatchPriority::new(request.level)
            .ok_or("there is no such batch priority")?;
        let new = NewBatch::new(batch.clone())
            .priority(level)
            .limit(NonZeroU32::new(request.limit))
            .on_complete(OnComplete::new(told));
        self.batches()?.create(&new).await?;
        let numbers = request.first..request.first + request.pieces;
        let pieces: Vec<NewJob> =
            numbers.map(|number| NewJob::new(number.to_string())).collect();
        for some in pieces.chunks(AT_ONCE) {
            self.batches()?.add(&batch, some, None).await?;
        }
        self.batches()?.seal(&batch).await?;
        Ok(())
    }

    /// Reads the status of both batches, and checks their counts (B1, B2, B3). Returns
    /// whether both have completed and no job is left. No call waits for a completion.
    async fn have_all_ended(&mut self) -> SuiteResult<bool> {
        let mut all = true;
        for request in &REQUESTS {
            let Some(status) = self.status(request).await? else { return Ok(false) };
            let sum = status.ended() + status.leased + status.waiting;
            if status.total != sum || status.total != request.pieces {
                self.wrong.push(format!("B2: {status:?}"));
            }
            if status.leased > u64::from(request.limit) {
                self.wrong.push(format!("B3: {status:?}"));
            }
            if status.state.is_completed() && status.ended() != status.total {
                self.wrong.push(format!("B1: {status:?}"));
            }
            all &= status.state.is_completed();
        }
        let stats = unless_away(self.queue.stats().await)?;
        Ok(all && stats.is_some_and(|stats| stats.unfinished() == 0))
    }

    /// The status of a batch. `None` if the store cannot be reached for a moment.
    async fn status(&self, request: &Request) -> SuiteResult<Option<BatchStatus>> {
        let known = self.batches()?.batch(&BatchId::new(request.name)?).await;
        let Some(known) = unless_away(known)? else { return Ok(None) };
        known.map(Some).ok_or_else(|| format!("{} is gone", request.name).into())
    }

    async fn judge(&mut self, kills: Kills) -> SuiteResult<()> {
        let mut ends: Vec<Timestamp> = Vec::new();
        for request in &REQUESTS {
            let status = self.status(request).await?.ok_or("the store is down")?;
            let is_done = status.outcome() == Some(BatchOutcome::Done);
            if !is_done || status.done != request.pieces {
                self.wrong.push(format!("B5: {status:?}"));
            }
            ends.extend(status.completed_at);
        }
        if !ends.is_sorted_by(|big, small| small < big) {
            self.wrong.push(format!("B4: big and small ended at {ends:?}"));
        }
        self.judge_counters().await?;
        self.judge_records(kills.workers)?;
        let has_all = !self.site.has_server() || kills.servers > 0;
        if kills.workers < FEWEST_KILLS || !has_all {
            let Kills { workers, servers } = kills;
            self.wrong
                .push(format!("only {workers} workers, {servers} servers killed"));
        }
        Ok(())
    }

    /// Checks by the queue's counters that each piece and each completion job ended
    /// once (B2, B5).
    async fn judge_counters(&mut self) -> SuiteResult<()> {
        let stats = self.queue.stats().await?;
        let jobs: u64 = REQUESTS.iter().map(|request| request.pieces + 1).sum();
        if stats.finished != jobs || stats.dead + stats.discarded != 0 {
            self.wrong.push(format!(
                "B5: {jobs} jobs were pushed, but the queue reports {stats:?}"
            ));
        }
        let problems = self.queue.audit().await?.problems;
        self.wrong
            .extend(problems.into_iter().map(|it| format!("the audit reports: {it}")));
        Ok(())
    }

    /// Checks by the workers' records that each job ran to its end, and ran again only
    /// because of a kill (R6).
    fn judge_records(&mut self, kills: u64) -> SuiteResult<()> {
        let mut runs = Runs::default();
        for records in &self.processes.records {
            record::read(records)?.into_iter().for_each(|one| runs.add(one));
        }
        let jobs = REQUESTS.iter().flat_map(|request| {
            let pieces = request.first..request.first + request.pieces;
            pieces.chain([request.completion])
        });
        let most = kills * u64::from(worker::SLOTS.get());
        self.wrong.extend(runs.judge(jobs, most));
        Ok(())
    }
}
