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
    printable::printable,
    table::Table,
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
            let subject = queue.capabilities().subject();
            say(&format!(
                "{subject} stores no reports of workers: only those that hold jobs are \
                 listed"
            ));
        }
        if is_cut {
            say(&format!("only {MOST_HELD} leased jobs were counted: there are more"));
        }
        Ok(())
    }

    fn print(&self, rows: &[Row<'_>]) -> CommandResult {
        if self.format.is_json() {
            return self.format.print_records(rows);
        }
        if rows.is_empty() {
            return Ok(());
        }
        self.table(rows).print()
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::sample_jobs::at;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        args: Args,
    }

    /// A worker that has reported and holds two jobs, and one that only holds a job.
    fn known() -> (BTreeMap<WorkerId, WorkerView>, HeldByWorker) {
        let [busy, silent] =
            ["mail-7:11:nonce", "silent"].map(|id| WorkerId::new(id).unwrap());
        let slots = NonZeroU32::new(12).unwrap();
        let view = WorkerView::new(busy.clone(), slots, at(13)).until(at(14));
        let [a, b, c] = ["a", "b", "c"].map(|id| JobId::new(id).ok());
        let held = [
            (busy.clone(), vec![(a, at(15)), (b, at(16))]),
            (silent, vec![(c, at(17))]),
        ];
        (BTreeMap::from([(busy, view)]), held.into_iter().collect())
    }

    #[test]
    fn each_property_of_a_worker_has_its_field_in_json() {
        let (reported, held) = known();

        let json = serde_json::to_value(rows(&reported, &held)).unwrap();

        let held = |id: &str, ms: i64| json!({"id": id, "since_ms": ms});
        let expected = json!([
            {
                "worker": "mail-7:11:nonce", "host": "mail-7", "pid": 11,
                "reported": true, "since_ms": 13_000, "until_ms": 14_000, "slots": 12,
                "held": [held("a", 15_000), held("b", 16_000)],
            },
            {
                "worker": "silent", "host": null, "pid": null, "reported": false,
                "since_ms": null, "until_ms": null, "slots": null,
                "held": [held("c", 17_000)],
            },
        ]);
        assert_eq!(json, expected);
    }

    #[test]
    fn each_property_of_a_worker_has_its_column() {
        let (reported, held) = known();
        let args = CommandLine::parse_from(["workers", "--jobs"]).args;

        let text = args.table(&rows(&reported, &held)).render(200);

        let lines: Vec<Vec<_>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            "HOST PID SINCE SLOTS JOBS WORKER",
            "mail-7 11 1970-01-01T00:00:13.000Z 12 2 mail-7:11:nonce",
            "a b",
            "not reported 1 silent",
            "c",
        ];
        let expected = expected.map(|line| line.split(' ').collect::<Vec<_>>());
        assert_eq!(lines, expected);
    }
}
