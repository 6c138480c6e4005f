//! The command line of the benchmark, which selects the measurements.

use std::{
    io,
    num::{NonZeroU16, NonZeroU64},
    path::{Path, PathBuf},
};

use clap::Parser;
use tokio::runtime::Runtime;

use crate::{
    failure::{CommandResult, Failure, end},
    interrupts::Interrupts,
    measure::Measuring,
    message::say,
    output::Output,
    page, partitions,
    plan::Plan,
    results::Results,
    server::{Durability, Server},
    server_time,
    store::Store,
    tally, text,
};

/// Compare the backends' speed on your server
///
/// Runs the same workloads on each backend and on the bare store, in turn, so that a
/// disturbance affects all of them. Compare the ratios to the bare store. Each job is
/// counted: a run that missed a job or ran a job twice is void, and the exit code is 1.
///
/// The server is that of --url or RELQ_URL, which should have no other load, or a
/// private redis-server. The private server is also measured with a log synced every
/// second and before each reply. SQLite is measured in a temporary file in the current
/// folder. The queues of the benchmark are removed afterwards.
#[derive(Parser, Debug)]
#[command(name = "relq-bench", version, max_term_width = 88)]
#[command(mut_arg("url", |url| url.help("The Redis server [default: a private one]")))]
pub(crate) struct Bench {
    #[command(flatten)]
    store: Store,

    /// Measure only these backends [default: all]
    #[arg(long = "backend", value_name = "NAME", value_delimiter = ',')]
    backends: Vec<String>,

    /// Jobs of each workload with many at once; a tenth of it for workloads of one job
    /// at a time
    #[arg(long, value_name = "N", default_value = "100000")]
    jobs: NonZeroU64,

    /// The size of a payload in bytes
    #[arg(long, value_name = "BYTES", default_value = "256")]
    payload: usize,

    /// Run a shorter benchmark of about three minutes
    #[arg(long, conflicts_with = "jobs")]
    quick: bool,

    /// Measure the longest time of one command for each operation on private Redis
    /// servers, with many jobs and with jobs of 1 and 16 MiB
    ///
    /// Prints milliseconds of the server, and in brackets the mebibytes of this
    /// process's memory. The exit code is 1 if a command took more than 5 ms and no
    /// payload was larger than 1 MiB.
    #[arg(long, conflicts_with_all = ["jobs", "payload", "out", "url"])]
    server_time: bool,

    /// Measure queues of these numbers of parts, such as 1,3, on a private cluster that
    /// has a node for each part
    ///
    /// Prints the server time that each node spends on a job. A call pushes 100 jobs,
    /// and there are 64 handlers for each part.
    #[arg(
        long,
        value_name = "N",
        value_delimiter = ',',
        conflicts_with_all = ["out", "url", "server_time"],
    )]
    partitions: Vec<NonZeroU16>,

    /// Print one JSON value per line instead of tables
    #[arg(long)]
    json: bool,

    /// Write measurements.md and its charts into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Measure nothing: draw the charts of this folder again, from the figures in its
    /// measurements.md
    #[arg(long, value_name = "DIR", exclusive = true)]
    redraw: Option<PathBuf>,
}

impl Bench {
    /// Parses the command line. If it is invalid, prints the reason and exits with 2.
    pub(crate) fn from_command_line() -> Self {
        Self::try_parse().unwrap_or_else(|error| end(&error))
    }

    /// Runs the measurements that the options select, and prints their results.
    pub(crate) fn run(self) -> CommandResult {
        if let Some(folder) = &self.redraw {
            return redraw(folder);
        }
        let cannot = |error| Failure::Failed(format!("cannot start threads: {error}"));
        let runtime = Runtime::new().map_err(cannot)?;
        let outcome = if self.server_time {
            runtime.block_on(Box::pin(self.compare_server_times()))
        } else if self.partitions.is_empty() {
            runtime.block_on(Box::pin(self.compare()))
        } else {
            runtime.block_on(Box::pin(self.compare_partitions()))
        };
        runtime.shutdown_background();
        outcome
    }

    async fn compare(self) -> CommandResult {
        let plan = self.plan()?;
        let backends = self.backends()?;
        let mut measuring = Measuring::new(plan);
        let interrupts = Interrupts::listen()?;
        tokio::select! {
            measured = Box::pin(measure(&self.store, &backends, &mut measuring)) => measured?,
            () = interrupts.first() => {
                return Err(Failure::Failed("stopped by a signal".into()));
            }
        }
        self.show(&measuring.results())
    }

    async fn compare_server_times(self) -> CommandResult {
        let backends = self.backends()?;
        let interrupts = Interrupts::listen()?;
        let report = tokio::select! {
            report = Box::pin(server_time::compare(&backends, self.quick)) => report?,
            () = interrupts.first() => {
                return Err(Failure::Failed("stopped by a signal".into()));
            }
        };
        let mut out = Output::new();
        let text = if self.json { report.json_lines()? } else { report.tables() };
        out.text(&text)?;
        out.flush()?;
        let excesses = report.excesses();
        for excess in &excesses {
            say(&format!("relq-bench: too long: {excess} ms"));
        }
        if excesses.is_empty() { Ok(()) } else { Err(Failure::Reported) }
    }

    async fn compare_partitions(self) -> CommandResult {
        let plan = self.plan()?;
        let mut backends = self.backends()?;
        if self.backends.is_empty() {
            backends.retain(|backend| partitions::has_parts(backend));
        }
        let interrupts = Interrupts::listen()?;
        let measured = partitions::measure(&backends, &self.partitions, &plan);
        let report = tokio::select! {
            report = Box::pin(measured) => report?,
            () = interrupts.first() => {
                return Err(Failure::Failed("stopped by a signal".into()));
            }
        };
        let mut out = Output::new();
        let text = if self.json { report.json_lines()? } else { report.tables() };
        out.text(&text)?;
        out.flush()?;
        if report.is_exact() {
            return Ok(());
        }
        say("relq-bench: some runs are void: jobs were missing or handled twice");
        Err(Failure::Reported)
    }

    fn plan(&self) -> CommandResult<Plan> {
        if self.payload < tally::LEAST_PAYLOAD {
            let least = tally::LEAST_PAYLOAD;
            return Err(Failure::Usage(format!(
                "a payload carries its number and time: --payload {least} at least"
            )));
        }
        Ok(match self.quick {
            true => Plan::quick(self.payload),
            false => Plan::full(self.jobs.get(), self.payload),
        })
    }

    fn backends(&self) -> CommandResult<Vec<String>> {
        let known: Vec<_> = relq::backends().map(str::to_owned).collect();
        for backend in &self.backends {
            if !known.contains(backend) {
                let known = known.join(", ");
                return Err(Failure::Usage(format!(
                    "no backend is called {backend:?} here (there are {known})"
                )));
            }
        }
        Ok(if self.backends.is_empty() { known } else { self.backends.clone() })
    }

    fn show(&self, results: &Results) -> CommandResult {
        let mut out = Output::new();
        let text =
            if self.json { results.json_lines()? } else { text::tables(results) };
        out.text(&text)?;
        out.flush()?;
        if let Some(folder) = &self.out {
            let written = page::write(folder, results, &self.command_line());
            written.map_err(|error| cannot_write(folder, &error))?;
            say(&format!("written: {}", folder.join(page::FILE).display()));
        }
        if results.is_exact() {
            return Ok(());
        }
        say("relq-bench: some runs are void: jobs were missing or handled twice");
        Err(Failure::Reported)
    }

    /// The command that repeats this run, for the page of measurements.
    fn command_line(&self) -> String {
        let mut words = Vec::new();
        if !self.backends.is_empty() {
            words.push(format!("--backend {}", self.backends.join(",")));
        }
        if self.quick {
            words.push("--quick".to_owned());
        } else {
            words.push(format!("--jobs {}", self.jobs));
        }
        words.push(format!("--payload {}", self.payload));
        if let Some(folder) = &self.out {
            words.push(format!("--out {}", folder.display()));
        }
        words.join(" ")
    }
}

fn redraw(folder: &Path) -> CommandResult {
    page::redraw(folder).map_err(|error| cannot_write(folder, &error))?;
    say(&format!("drawn: the charts of {}", folder.join(page::FILE).display()));
    Ok(())
}

fn cannot_write(folder: &Path, error: &io::Error) -> Failure {
    let folder = folder.display();
    Failure::Failed(format!("cannot write to {folder}: {error}"))
}

async fn measure(
    store: &Store,
    backends: &[String],
    measuring: &mut Measuring,
) -> CommandResult {
    if backends.iter().any(|backend| backend != "sqlite") {
        match store.given_url()?.filter(|url| !url.starts_with("sqlite:")) {
            Some(url) => measuring.on_server(Server::at(&url)?, backends).await?,
            None => on_private_servers(measuring, backends).await?,
        }
    }
    if backends.iter().any(|backend| backend == "sqlite") {
        measuring.on_sqlite().await?;
    }
    Ok(())
}

/// Measures on one private server after the other, so that they do not disturb each
/// other.
async fn on_private_servers(
    measuring: &mut Measuring,
    backends: &[String],
) -> CommandResult {
    for durability in [Durability::Memory, Durability::EverySecond, Durability::Always]
    {
        let server = Server::start(durability).await?;
        measuring.on_server(server, backends).await?;
    }
    Ok(())
}
