//! `relq workers`: lists the workers that run, and the jobs that they hold.

use std::{collections::BTreeMap, num::NonZeroU32};

use relq::{
    JobId, Queue, WorkerId,
    environment::Timestamp,
    operator::{HeldByWorker, WorkerView, held_by_worker},
};
use serde::Serialize;

use crate::{
    failure::{CommandResult, unless_closed},
    format::Format,
    message::say,
    output::Output,
    printable::printable,
    table::{Table, line_width},
    target::Target,
    view::time,
};

/// How many workers one call to the store reads at most.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// How many leased jobs are counted at most.
const MOST_HELD: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");

/// List the workers that run, and how many jobs each of them holds
///
/// A worker reports every 20 seconds that it runs, and is listed for a minute after its last
/// report (R33). So a worker that was killed is listed for up to a minute.
///
/// A worker that holds jobs and has not reported is listed as `not reported`: its reports
/// are older than a minute, it is of an earlier version, or the backend stores no reports.
/// At most 10,000 leased jobs are counted.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Also print the ids of the jobs that each worker holds
    #[arg(long)]
    jobs: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let reported = reported(&*queue).await?;
        let (held, is_cut) = held_by_worker(&*queue, MOST_HELD).await?;
        unless_closed(self.print(&rows(&reported, &held)))?;
        if queue.inspect_queue().is_none() {
            let backend = queue.capabilities().backend;
            say(&format!(
                "the backend {backend} stores no reports of workers: only those that hold \
                 jobs are listed"
            ));
        }
        if is_cut {
            say(&format!("only {MOST_HELD} leased jobs were counted: there are more"));
        }
        Ok(())
    }

    fn print(&self, rows: &[Row<'_>]) -> CommandResult {
        if self.format.is_json() {
            let mut records = self.format.records()?;
            rows.iter().try_for_each(|row| records.item(row))?;
            return records.end();
        }
        if rows.is_empty() {
            return Ok(());
        }
        let mut out = Output::new();
        out.text(&self.table(rows).render(line_width()))?;
        out.flush()
    }

    fn table(&self, rows: &[Row<'_>]) -> Table<6> {
        let mut table = Table::new(["HOST", "PID", "SINCE", "SLOTS", "JOBS", "WORKER"]);
        for row in rows {
            let since = row.since_ms.map(Timestamp::from_unix_ms).map(time);
            let number = |number: Option<u32>| number.map(|it| it.to_string());
            let cells = [
                row.host.map(printable).unwrap_or_default(),
                number(row.pid).unwrap_or_default(),
                since.unwrap_or_else(|| "not reported".to_owned()),
                number(row.slots).unwrap_or_default(),
                row.held.len().to_string(),
                printable(row.worker),
            ];
            let ids = || row.held.iter().map(|job| job.id.unwrap_or("-"));
            let has_note = self.jobs && !row.held.is_empty();
            let note = has_note.then(|| ids().collect::<Vec<_>>().join(" "));
            table.row(cells, note.as_deref().map(printable));
        }
        table
    }
}

/// A worker, with the jobs that it holds. `slots` and the times are null for a worker that
/// has not reported.
#[derive(Serialize)]
struct Row<'a> {
    worker: &'a str,
    host: Option<&'a str>,
    pid: Option<u32>,
    reported: bool,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    slots: Option<u32>,
    held: Vec<HeldJson<'a>>,
}

#[derive(Serialize)]
struct HeldJson<'a> {
    id: Option<&'a str>,
    since_ms: i64,
}

fn rows<'a>(
    reported: &'a BTreeMap<WorkerId, WorkerView>,
    held: &'a HeldByWorker,
) -> Vec<Row<'a>> {
    let mut all: BTreeMap<&WorkerId, Option<&WorkerView>> =
        held.keys().map(|worker| (worker, None)).collect();
    all.extend(reported.iter().map(|(worker, view)| (worker, Some(view))));
    let row = |(worker, view): (&'a WorkerId, Option<&WorkerView>)| Row {
        worker: worker.as_str(),
        host: worker.host(),
        pid: worker.pid(),
        reported: view.is_some(),
        since_ms: view.map(|view| view.since.unix_ms()),
        until_ms: view.map(|view| view.until.unix_ms()),
        slots: view.map(|view| view.slots.get()),
        held: held.get(worker).into_iter().flatten().map(HeldJson::of).collect(),
    };
    all.into_iter().map(row).collect()
}

impl<'a> HeldJson<'a> {
    fn of((id, since): &'a (Option<JobId>, Timestamp)) -> Self {
        Self { id: id.as_ref().map(JobId::as_str), since_ms: since.unix_ms() }
    }
}

/// Reads all workers that have reported. A worker may be on several pages.
async fn reported(queue: &dyn Queue) -> CommandResult<BTreeMap<WorkerId, WorkerView>> {
    let mut workers = BTreeMap::new();
    let Some(inspect) = queue.inspect_queue() else { return Ok(workers) };
    let mut after = None;
    loop {
        let page = inspect.workers(after.as_ref(), PAGE).await?;
        let named = page.workers.into_iter().map(|view| (view.worker.clone(), view));
        workers.extend(named);
        after = page.next;
        if after.is_none() {
            return Ok(workers);
        }
    }
}
