//! The list of the queues.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{
    Drawing, Tone, below, line_of,
    table::{Cell, Column, Fit, Table, column},
    text::{rate, short},
};
use crate::{
    printable::printable,
    top::overview::{QueueRow, SortBy},
};

const COLUMNS: [Column; 11] = [
    column("QUEUE", Fit::Rest, 0),
    column("BACKEND", Fit::Left, 8),
    column("READY", Fit::Right, 0),
    column("OLDEST", Fit::Right, 4),
    column("SCHED", Fit::Right, 5),
    column("LEASED", Fit::Right, 3),
    column("DEAD", Fit::Right, 1),
    column("IN/S", Fit::Right, 6),
    column("OUT/S", Fit::Right, 6),
    column("DIED", Fit::Right, 7),
    column("STATE", Fit::Left, 2),
];

/// The column of the table that shows a sort.
fn column_of(sort: SortBy) -> usize {
    match sort {
        SortBy::Name => 0,
        SortBy::Ready => 2,
        SortBy::Oldest => 3,
        SortBy::Scheduled => 4,
        SortBy::Leased => 5,
        SortBy::Dead => 6,
        SortBy::Pushed => 7,
        SortBy::Ended => 8,
        SortBy::Died => 9,
    }
}

pub(super) fn draw(drawing: &Drawing<'_>, buffer: &mut Buffer, area: Rect) {
    let overview = &drawing.state.overview;
    let rows = overview.rows();
    let table = Table {
        columns: &COLUMNS,
        rows: rows.iter().map(|row| cells(row)).collect(),
        selected: overview.selected(),
        sorted: Some(column_of(overview.sort)),
    };
    table.draw(drawing, buffer, area);
    if rows.is_empty() {
        let why = match overview.all {
            None => "the queues are being listed…",
            Some(0) => "the store has no queue yet",
            Some(_) => "no queue has a name with this text",
        };
        drawing.put(buffer, line_of(below(area, 1), 0), 1, (why, Tone::Quiet));
    }
}

fn cells(row: &QueueRow) -> Vec<Cell> {
    let count = |of: fn(&relq::Stats) -> u64, tone| {
        row.stats.as_ref().map_or(Cell::plain(""), |stats| Cell::count(of(stats), tone))
    };
    let rates = |of: fn(relq::operator::Rates) -> f64| {
        let cell = |it| Cell::new(rate(of(it)), zero_is_quiet(of(it)));
        row.rates.map_or(Cell::new("-", Tone::Quiet), cell)
    };
    let stats = row.stats.unwrap_or_default();
    let state = match (&row.trouble, stats.paused) {
        (Some(trouble), _) => Cell::new(trouble.clone(), Tone::Bad),
        (None, true) => Cell::new("paused", Tone::Warning),
        (None, false) => Cell::plain(""),
    };
    vec![
        Cell::plain(printable(row.name.as_str())),
        Cell::new(row.backend.unwrap_or_default(), Tone::Quiet),
        count(|stats| stats.ready, Tone::Plain),
        Cell::plain(stats.oldest_ready_age.map(short).unwrap_or_default()),
        count(|stats| stats.scheduled, Tone::Plain),
        count(|stats| stats.leased, Tone::Plain),
        count(|stats| stats.dead, Tone::Bad),
        rates(|rates| rates.pushed),
        rates(|rates| rates.ended),
        Cell::count(row.died(), Tone::Bad),
        state,
    ]
}

fn zero_is_quiet(rate: f64) -> Tone {
    if rate > 0.0 { Tone::Good } else { Tone::Quiet }
}
