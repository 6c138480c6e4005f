//! The lists of an open queue: jobs, errors and workers.

use ratatui::{buffer::Buffer, layout::Rect};
use relq::{
    JobId,
    environment::Timestamp,
    operator::{JobState, JobView, StateDetail},
};

use super::{
    Drawing, Tone, below, line_of,
    table::{Cell, Column, Fit, Table, column},
    text::{ago, until},
};
use crate::{
    printable::{cut, payload, printable},
    top::{
        asks::{Completeness, Filter, Group, JobsPage, Only, WorkerRow},
        listing::Pages,
        open_queue::{List, OpenQueue, Tab},
    },
    view::note,
};

/// How many columns of a payload or an error are prepared for a row.
const MOST_OF_TEXT: usize = 400;

/// How many columns of a filter are shown.
const MOST_OF_FILTER: usize = 36;

const READY: [Column; 4] = [
    column("ID", Fit::Left, 0),
    column("TRY", Fit::Right, 2),
    column("PUSHED", Fit::Right, 1),
    column("PAYLOAD", Fit::Rest, 0),
];
const LEASED: [Column; 6] = [
    column("ID", Fit::Left, 0),
    column("TRY", Fit::Right, 5),
    column("HELD", Fit::Right, 1),
    column("LEFT", Fit::Right, 3),
    column("WORKER", Fit::Left, 2),
    column("PAYLOAD", Fit::Rest, 4),
];
const SCHEDULED: [Column; 4] = [
    column("ID", Fit::Left, 0),
    column("TRY", Fit::Right, 2),
    column("DUE IN", Fit::Right, 0),
    column("PAYLOAD", Fit::Rest, 1),
];
const DEAD: [Column; 4] = [
    column("ID", Fit::Left, 0),
    column("TRY", Fit::Right, 2),
    column("SINCE", Fit::Right, 1),
    column("ERROR", Fit::Rest, 0),
];
const ERRORS: [Column; 4] = [
    column("JOBS", Fit::Right, 0),
    column("FIRST", Fit::Right, 2),
    column("LAST", Fit::Right, 1),
    column("ERROR", Fit::Rest, 0),
];
const WORKERS: [Column; 6] = [
    column("HOST", Fit::Left, 0),
    column("PID", Fit::Right, 0),
    column("SINCE", Fit::Right, 2),
    column("SLOTS", Fit::Right, 3),
    column("JOBS", Fit::Right, 0),
    column("HOLDS", Fit::Rest, 1),
];

pub(super) fn draw(
    drawing: &Drawing<'_>,
    open: &OpenQueue,
    buffer: &mut Buffer,
    area: Rect,
) {
    let (table, remark) = match (&open.list, open.tab) {
        (List::Jobs { page: Some(page), pages, selected }, Tab::Jobs(state)) => {
            let rows: Vec<_> =
                page.jobs.iter().map(|job| cells(drawing, job)).collect();
            let table = (columns_of(state), rows, selected.at());
            (table, jobs_remark(page, pages, open))
        }
        (List::Errors { groups: Some((groups, whole)), selected }, _) => {
            let rows = groups.iter().map(|group| group_cells(drawing, group)).collect();
            ((&ERRORS[..], rows, selected.at()), cut_remark(*whole, "dead jobs"))
        }
        (List::Workers { rows: Some((workers, whole)), selected }, _) => {
            let rows = workers.iter().map(|row| worker_cells(drawing, row)).collect();
            ((&WORKERS[..], rows, selected.at()), cut_remark(*whole, "workers or jobs"))
        }
        _ => {
            drawing.put(buffer, area, 1, ("…", Tone::Quiet));
            return;
        }
    };
    let (columns, rows, selected) = table;
    let length = rows.len();
    let list = remark.as_ref().map_or(area, |_| above_last(area));
    Table { columns, rows, selected, sorted: None }.draw(drawing, buffer, list);
    if length == 0 {
        drawing.put(buffer, line_of(below(area, 1), 0), 1, ("none", Tone::Quiet));
    }
    if let Some(remark) = remark {
        let at = usize::from(list.height).min(length.max(1) + 1);
        drawing.put(buffer, line_of(area, at), 1, (&remark, Tone::Quiet));
    }
}

fn above_last(area: Rect) -> Rect {
    Rect::new(area.x, area.y, area.width, area.height.saturating_sub(1))
}

fn columns_of(state: JobState) -> &'static [Column] {
    match state {
        JobState::Ready => &READY,
        JobState::Leased => &LEASED,
        JobState::Scheduled => &SCHEDULED,
        JobState::Dead => &DEAD,
    }
}

/// Which page of the jobs is shown, and what follows.
fn jobs_remark(page: &JobsPage, pages: &Pages, open: &OpenQueue) -> Option<String> {
    let number = pages.number();
    let more = if page.next.is_some() { "; ] for the next" } else { "" };
    if !open.filter.is_empty() {
        let (which, looked_at) =
            (cut(which(&open.filter), MOST_OF_FILTER), page.looked_at);
        return Some(format!(
            "{which}: page {number}, {looked_at} jobs looked at{more}"
        ));
    }
    (number > 1 || page.next.is_some()).then(|| format!("page {number}{more}"))
}

/// Which jobs a filter lets through.
fn which(filter: &Filter) -> String {
    let of = match &filter.only {
        Only::All => String::new(),
        Only::Worker(worker) => format!("of {}", printable(worker.as_str())),
        Only::Group(group) => printable(&group.error),
    };
    match filter.text.as_str() {
        "" => of,
        text => format!("/{} {of}", printable(text)).trim_end().to_owned(),
    }
}

fn cut_remark(whole: Completeness, what: &str) -> Option<String> {
    (whole == Completeness::Cut)
        .then(|| format!("there are more {what}: not all were read"))
}

fn id(id: Option<&JobId>) -> Cell {
    Cell::plain(id.map_or("-".to_owned(), |id| printable(id.as_str())))
}

fn cells(drawing: &Drawing<'_>, job: &JobView) -> Vec<Cell> {
    let clock = drawing.clock;
    let attempt =
        Cell::new(format!("{}/{}", job.attempt, job.max_attempts), Tone::Quiet);
    let bytes = || Cell::plain(payload(&job.payload, MOST_OF_TEXT));
    let mut cells = vec![id(job.id.as_ref()), attempt];
    match &job.detail {
        StateDetail::Ready => {
            let pushed = job.enqueued_at.map(|at| ago(at, clock));
            cells.extend([Cell::plain(pushed.unwrap_or_default()), bytes()]);
        }
        StateDetail::Scheduled { due } => {
            cells.extend([Cell::plain(until(*due, clock)), bytes()]);
        }
        StateDetail::Following { .. } => {
            let after = note(job).unwrap_or_default();
            cells.extend([Cell::new(after, Tone::Warning), bytes()]);
        }
        StateDetail::Leased { worker, since, until: end } => {
            let left = match until(*end, clock) {
                left if *end > clock => Cell::plain(left),
                _ => Cell::new("overdue", Tone::Bad),
            };
            let holder = match (worker.host(), worker.pid()) {
                (Some(host), Some(pid)) => format!("{host} {pid}"),
                _ => worker.to_string(),
            };
            let held = Cell::plain(ago(*since, clock));
            cells.extend([held, left, Cell::plain(printable(&holder)), bytes()]);
        }
        StateDetail::Dead { reason, since } => {
            let error = printable(job.last_error.as_ref().unwrap_or(reason));
            cells
                .extend([Cell::plain(ago(*since, clock)), Cell::new(error, Tone::Bad)]);
        }
    }
    cells
}

fn group_cells(drawing: &Drawing<'_>, group: &Group) -> Vec<Cell> {
    let at = |at: Timestamp| Cell::plain(ago(at, drawing.clock));
    let jobs = Cell::plain(group.jobs.len().to_string());
    let error = Cell::new(printable(&group.error), Tone::Bad);
    vec![jobs, at(group.first), at(group.last), error]
}

fn worker_cells(drawing: &Drawing<'_>, row: &WorkerRow) -> Vec<Cell> {
    let since = match &row.report {
        Some(report) => Cell::plain(ago(report.since, drawing.clock)),
        None => Cell::new("no report", Tone::Warning),
    };
    let slots = row.report.as_ref().map(|report| report.slots.to_string());
    let holds = row.held.iter().map(|(id, since)| {
        let id = id.as_ref().map_or("-", JobId::as_str);
        format!("{id} {}", ago(*since, drawing.clock))
    });
    let host = row.worker.host().unwrap_or(row.worker.as_str());
    let pid = row.worker.pid().map(|pid| pid.to_string());
    vec![
        Cell::plain(printable(host)),
        Cell::plain(pid.unwrap_or_default()),
        since,
        Cell::plain(slots.unwrap_or_default()),
        Cell::count(row.held.len() as u64, Tone::Plain),
        Cell::plain(printable(&holds.collect::<Vec<_>>().join(", "))),
    ]
}
