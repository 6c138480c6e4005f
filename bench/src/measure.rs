//! Runs the measurements in their order, and collects the results.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use relq::environment::Environment;

use crate::{
    at_rest,
    contender::Contender,
    failure::{CommandResult, Failure},
    growth::{self, Many, queue_name},
    message::say,
    meter::Meter,
    plan::Plan,
    queue::QueueContender,
    raw_redis::RawRedis,
    raw_sqlite::RawSqlite,
    results::Results,
    sample::{Figures, Sample},
    server::Server,
    workload::Workload,
};

const LINE: &str = "{bar:30} {pos}/{len}  {msg}  {elapsed}";

/// The plan of a run, and the results so far.
#[derive(Debug)]
pub(crate) struct Measuring {
    plan: Plan,
    results: Results,
}

/// A group of contenders that use the same store. The first is the store without relq.
struct Field {
    durability: String,
    contenders: Vec<Contender>,
}

impl Measuring {
    pub(crate) fn new(plan: Plan) -> Self {
        let results = Results::new(&plan);
        Self { plan, results }
    }

    pub(crate) fn results(self) -> Results {
        self.results
    }

    /// Measures, on this server, those backends in `backends` that run on Redis. The
    /// memory and the growth of the cost are measured only on the first server.
    pub(crate) async fn on_server(
        &mut self,
        server: Server,
        backends: &[String],
    ) -> CommandResult {
        let is_first = self.results.growth.is_empty();
        let durability = server.durability().await?;
        self.results.server = Some(server.version().await?);
        let random = Environment::default().random().text(12);
        let raw = RawRedis::open(&server, &format!("relq-bench-raw-{random}")).await?;
        let mut contenders = vec![Contender::RawRedis(raw)];
        for backend in backends.iter().filter(|backend| *backend != "sqlite") {
            let opened = open(&server, backend, &random).await?;
            contenders.extend(opened.map(Contender::Queue));
        }
        self.measure(Field { durability, contenders }, is_first).await
    }

    /// Measures the backend on SQLite, and SQLite without relq.
    pub(crate) async fn on_sqlite(&mut self) -> CommandResult {
        let no_folder =
            |error| Failure::Failed(format!("no temporary folder: {error}"));
        let folder =
            tempfile::TempDir::with_prefix_in("relq-bench-", ".").map_err(no_folder)?;
        let raw = RawSqlite::open(&folder.path().join("raw.db"))?;
        let url = format!("sqlite:{}", folder.path().join("relq.db").display());
        let name = queue_name("sqlite")?;
        let queue = QueueContender::open("sqlite", &url, &name, None).await?;
        let contenders = vec![Contender::RawSqlite(raw), Contender::Queue(queue)];
        let durability = "each commit synced".to_owned();
        self.measure(Field { durability, contenders }, true).await
    }

    async fn measure(&mut self, mut field: Field, with_growth: bool) -> CommandResult {
        self.workloads(&mut field).await?;
        if with_growth {
            self.growth_and_rest(&field).await?;
        }
        for contender in &mut field.contenders {
            contender.clean_up().await?;
        }
        Ok(())
    }

    /// Runs each workload on all contenders in turn, the store without relq first.
    async fn workloads(&mut self, field: &mut Field) -> CommandResult {
        let rounds = self.plan.repetitions * Workload::ALL.len();
        let bar = progress(rounds * field.contenders.len());
        let mut samples: Vec<Vec<Vec<Sample>>> =
            vec![vec![Vec::new(); Workload::ALL.len()]; field.contenders.len()];
        for _ in 0..self.plan.repetitions {
            for (at, workload) in Workload::ALL.into_iter().enumerate() {
                for (contender, samples) in
                    field.contenders.iter_mut().zip(&mut samples)
                {
                    bar.set_message(format!(
                        "{} {}",
                        contender.name(),
                        workload.name()
                    ));
                    samples[at].extend(contender.run(workload, &self.plan).await?);
                    bar.inc(1);
                }
            }
        }
        bar.finish_and_clear();
        for (at, workload) in Workload::ALL.into_iter().enumerate() {
            for (contender, mine) in field.contenders.iter().zip(&samples) {
                if mine[at].is_empty() {
                    continue;
                }
                self.results.figures.push(Figures::of(
                    contender.name(),
                    workload,
                    &field.durability,
                    &mine[at],
                    &samples[0][at],
                ));
            }
        }
        Ok(())
    }

    async fn growth_and_rest(&mut self, field: &Field) -> CommandResult {
        let bar = progress(3 * field.contenders.len());
        for contender in &field.contenders {
            let Contender::Queue(contender) = contender else { continue };
            for many in [Many::Waiting, Many::Leased] {
                bar.set_message(format!("{} many {many:?}", contender.name()));
                let growth = growth::measure(contender, many, &self.plan).await?;
                self.results.growth.extend(growth);
                bar.inc(1);
            }
            bar.set_message(format!("{} at rest", contender.name()));
            self.results.at_rest.push(at_rest::measure(contender, &self.plan).await?);
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }
}

/// Opens a backend's queue on the server. Prints a message and returns `None` if the
/// backend needs a database of its own and the server has no empty one.
async fn open(
    server: &Server,
    backend: &str,
    random: &str,
) -> CommandResult<Option<QueueContender>> {
    let database = if backend == "keyspace" {
        let Some(empty) = server.empty_database().await? else {
            say(
                "relq-bench: keyspace is left out: the server's last database is not empty",
            );
            return Ok(None);
        };
        empty
    } else {
        server.database()
    };
    let url = server.url_of(backend, database);
    let meter = Meter::new(server.connect().await?);
    let name = queue_name(random)?;
    let name = match backend {
        "keyspace" => name,
        other => queue_name(&format!("{other}-{random}"))?,
    };
    QueueContender::open(backend, &url, &name, Some(meter)).await.map(Some)
}

fn progress(steps: usize) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template(LINE);
    let style = style.expect("the template is a constant");
    ProgressBar::new(u64::try_from(steps).unwrap_or(u64::MAX)).with_style(style)
}
