//! The workers that run, and the jobs that they hold.

use std::num::NonZeroU32;

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{
    JobId, Queue, WorkerId,
    environment::Timestamp,
    operator::{HeldByWorker, WorkersPage, held_by_worker},
};

use super::{
    jobs::job_link,
    layout::{self, Tab, time},
};
use crate::{
    cursor,
    links::with_query,
    page_error::PageError,
    text::{counted, one_line},
    view::{Opened, View},
};

/// How many workers one page has.
const PAGE: NonZeroU32 = NonZeroU32::new(200).expect("not zero");

/// How many leased jobs are looked at.
const HELD: NonZeroU32 = NonZeroU32::new(1000).expect("not zero");

/// How many jobs of one worker are shown.
const SHOWN: usize = 20;

pub(crate) async fn show(view: View, opened: Opened) -> Result<Response, PageError> {
    let after = view.query.read_with("after", cursor::decode)?;
    let listed = match opened.queue.inspect_queue() {
        Some(index) => Some(index.workers(after.as_ref(), PAGE).await?),
        None => None,
    };
    let queue: &dyn Queue = &*opened.queue;
    let (held, is_cut) = held_by_worker(queue, HELD).await?;
    let rows = rows(listed.as_ref(), held, after.is_some());
    let body = html! {
        h1 { "Workers" }
        @if listed.is_none() {
            p { "Workers do not report to this backend: those that hold jobs are listed." }
        }
        @if is_cut {
            p.notice {
                "Only the first " (counted(HELD.get().into(), "leased job", "leased jobs"))
                " were looked at: a worker may hold more jobs than are shown."
            }
        }
        @if rows.is_empty() { p { "No worker is known." } } @else {
            (table(&view, &opened, &rows, is_cut))
        }
        @if let Some(next) = listed.as_ref().and_then(|page| page.next.as_ref()) {
            @let address = view.app.links.queue(&opened.name, "/workers");
            @let next = cursor::encode(next);
            p { a href=(with_query(&address, &[("after", Some(&next))])) { "More workers" } }
        }
        p.quiet {
            "A worker reports every 20 seconds. One that has stopped or died is listed for at "
            "most 60 seconds longer."
        }
    };
    Ok(layout::of_queue(&view, &opened, Tab::Workers, "Workers", &body))
}

/// A worker, as it is listed.
struct Row {
    worker: WorkerId,
    /// Its slots and the time of its first report; `None` if it has not reported.
    reported: Option<(NonZeroU32, Timestamp)>,
    held: Vec<(Option<JobId>, Timestamp)>,
}

/// The workers that have reported. If they are all on this page, the workers that hold jobs
/// but have not reported are listed too.
fn rows(
    listed: Option<&WorkersPage>,
    mut held: HeldByWorker,
    is_later_page: bool,
) -> Vec<Row> {
    let reported = listed.map(|page| &page.workers[..]).unwrap_or_default();
    let mut rows: Vec<_> = reported
        .iter()
        .map(|worker| Row {
            worker: worker.worker.clone(),
            reported: Some((worker.slots, worker.since)),
            held: held.remove(&worker.worker).unwrap_or_default(),
        })
        .collect();
    let is_whole = !is_later_page && listed.is_none_or(|page| page.next.is_none());
    if is_whole {
        let silent = held.into_iter();
        rows.extend(silent.map(|(worker, held)| Row { worker, reported: None, held }));
    }
    rows.sort_by(|one, other| one.worker.cmp(&other.worker));
    rows.dedup_by(|later, first| later.worker == first.worker);
    rows
}

fn table(view: &View, opened: &Opened, rows: &[Row], is_cut: bool) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for head in ["Worker", "Host", "Process", "Slots", "Runs since", "Holds"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for row in rows {
                        tr {
                            th.text scope="row" { (row.worker) }
                            td.text { (row.worker.host().unwrap_or("–")) }
                            td {
                                @match row.worker.pid() { Some(pid) => (pid), None => "–" }
                            }
                            @match row.reported {
                                Some((slots, since)) => { td { (slots) } td { (time(since)) } }
                                None => { td { "–" } td.quiet { "not reported" } }
                            }
                            td.text.wide { (held(view, opened, row, is_cut)) }
                        }
                    }
                }
            }
        }
    }
}

fn held(view: &View, opened: &Opened, row: &Row, is_cut: bool) -> Markup {
    let count = row.held.len();
    let all = with_query(
        &view.app.links.queue(&opened.name, "/jobs/leased"),
        &[("worker", Some(row.worker.as_str()))],
    );
    html! {
        @if count == 0 { span.quiet { "nothing" } } @else {
            a href=(all) {
                @if is_cut { "at least " }
                (counted(count as u64, "job", "jobs"))
            } ": "
            @for (id, since) in row.held.iter().take(SHOWN) {
                @match id {
                    Some(id) => a href=(job_link(view, opened, id.as_str(), None)) {
                        (one_line(id.as_str(), 64))
                    }
                    None => "a job without id"
                }
                " since " (time(*since)) "; "
            }
            @if count > SHOWN { "…" }
        }
    }
}
