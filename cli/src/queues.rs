//! `relq queues`: lists the queues of a store with their figures.

mod row;

use std::{collections::BTreeMap, time::Duration};

use relq::{
    ConnectError, Stats,
    operator::{Flow, Rates},
    store::{self, StoreQueue},
};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until},
};

use crate::{
    failure::{CommandResult, Failure, unless_closed},
    format::Format,
    target::Target,
    values::positive_duration,
};
use row::{Row, table};

/// How many queues are read at once.
const AT_ONCE: usize = 4;

/// List the queues of a store, with the number of their jobs in each state
///
/// In a SQLite file a queue is listed from the first command that opened it. On Redis the
/// command finds queues by their markers, page by page, while the server serves other
/// clients; a queue has no marker before the first write of relq. Only the database of the
/// URL is searched, and in a cluster all masters: the command fails while one of them cannot
/// be reached. A queue of several parts is one line.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Also print how many jobs are pushed and end in a second, from two readings with
    /// this time in between, such as 5s
    ///
    /// A job ends when it is done, discarded or cancelled. The numbers are too low if dead
    /// jobs are purged meanwhile, and absent if the queue is.
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    interval: Option<Duration>,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let url = target.url()?;
        let rows = self.rows(&url, all_queues(&url).await?).await;
        let unread = rows.iter().filter(|row| row.is_unread()).count();
        unless_closed(self.print(&rows))?;
        match unread {
            0 => Ok(()),
            unread => Err(Failure::Failed(format!(
                "{unread} of {} queues cannot be read",
                rows.len()
            ))),
        }
    }

    async fn rows(&self, url: &str, queues: Vec<StoreQueue>) -> Vec<Row> {
        let first = read_all(url, &queues).await;
        let mut rows: Vec<_> = std::iter::zip(queues.clone(), first).collect();
        let Some(interval) = self.interval else {
            let row = |(queue, reading)| Row::new(queue, reading, None);
            return rows.drain(..).map(row).collect();
        };
        let begun =
            rows.iter().filter_map(|(_, reading)| Some(reading.as_ref().ok()?.1));
        let end = begun.max().unwrap_or_else(Instant::now) + interval;
        sleep_until(end).await;
        let second = read_all(url, &queues).await;
        let row = |((queue, first), second): ((_, Reading), Reading)| {
            let rates = first.ok().zip(second.as_ref().ok());
            let rates =
                rates.and_then(|(first, second)| rates_between((first, *second)));
            Row::new(queue, second, rates)
        };
        rows.into_iter().zip(second).map(row).collect()
    }

    fn print(&self, rows: &[Row]) -> CommandResult {
        if self.format.is_json() {
            return self.format.print_records(rows);
        }
        if rows.is_empty() {
            return Ok(());
        }
        table(rows).print()
    }
}

/// The figures of a queue and when they were read, or why they cannot be read.
type Reading = Result<(Stats, Instant), Failure>;

/// How many jobs came and went between two readings. `None` if the queue was purged.
fn rates_between(
    ((first, began), (second, ended)): ((Stats, Instant), (Stats, Instant)),
) -> Option<Rates> {
    Rates::new(Flow::between((&first, &second))?, ended.duration_since(began))
}

/// Returns the queues of the store by their names, each once.
async fn all_queues(url: &str) -> CommandResult<Vec<StoreQueue>> {
    let (mut found, mut after) = (BTreeMap::new(), None);
    loop {
        let page = store::queues(url, after.as_ref()).await?;
        found.extend(page.queues.into_iter().map(|queue| (queue.name.clone(), queue)));
        after = page.next;
        if after.is_none() {
            return Ok(found.into_values().collect());
        }
    }
}

/// Reads the figures of the queues, in the order of `queues`.
async fn read_all(url: &str, queues: &[StoreQueue]) -> Vec<Reading> {
    let mut readings = Vec::with_capacity(queues.len());
    for some in queues.chunks(AT_ONCE) {
        let mut reading = JoinSet::new();
        for (at, queue) in some.iter().cloned().enumerate() {
            let url = url.to_owned();
            reading.spawn(async move { (at, read(&url, &queue).await) });
        }
        let mut read = reading.join_all().await;
        read.sort_by_key(|(at, _)| *at);
        readings.extend(read.into_iter().map(|(_, reading)| reading));
    }
    readings
}

async fn read(url: &str, queue: &StoreQueue) -> Reading {
    if queue.url.is_none() {
        return Err(Failure::Failed("its marker cannot be read".to_owned()));
    }
    let open = store::open(url, queue).await?;
    let stats = open.stats().await.map_err(ConnectError::from)?;
    Ok((stats, Instant::now()))
}
