//! An open queue: its counts with small charts, its tabs, and the list of the open one.

use ratatui::{buffer::Buffer, layout::Rect};
use relq::{
    Stats,
    operator::{Rates, Span},
};

use super::{
    Drawing, Tone, below, job, line_of, lists,
    spark::chart,
    text::{rate, short},
};
use crate::{
    printable::{columns, cut, printable},
    top::{
        open_queue::{OpenQueue, Tab},
        overview::QueueRow,
        state::QUEUE_HEAD,
    },
};

/// The columns of one half of the figures.
const HALF: usize = 40;

/// The column where a figure begins, and that where its chart begins.
const FIGURE: usize = 12;
const CHART: usize = 22;

/// The columns of a chart or a remark.
const BESIDE: usize = HALF - CHART - 2;

pub(super) fn draw(
    drawing: &Drawing<'_>,
    open: &OpenQueue,
    buffer: &mut Buffer,
    area: Rect,
) {
    if let Some(opened) = &open.job {
        return job::draw(drawing, open, opened, buffer, area);
    }
    let row = drawing.state.overview.queue(&open.name);
    let mut rest = area;
    if drawing.state.has_head() {
        head(drawing, open, row, buffer, area);
        rest = below(area, QUEUE_HEAD);
    }
    tabs(drawing, (open.tab, row), buffer, line_of(rest, 0));
    lists::draw(drawing, open, buffer, below(rest, 1));
}

/// The name of the queue, and its figures in two halves.
fn head(
    drawing: &Drawing<'_>,
    open: &OpenQueue,
    row: Option<&QueueRow>,
    buffer: &mut Buffer,
    area: Rect,
) {
    let name = printable(open.name.as_str());
    let line = line_of(area, 0);
    drawing.put(buffer, line, 1, (&name, Tone::Chosen));
    let Some((row, stats)) = row.and_then(|row| Some((row, row.stats?))) else {
        return;
    };
    let after = columns(&name) + 3;
    let backend = row.backend.unwrap_or_default();
    drawing.put(buffer, line, after, (backend, Tone::Quiet));
    if stats.paused {
        drawing.put(buffer, line, after + backend.len() + 2, ("PAUSED", Tone::Warning));
    }
    let has_room = usize::from(area.width) >= 2 * HALF - 8;
    let rows = stored(row, &stats).into_iter().zip(flowing(row, &stats));
    for (at, (left, right)) in rows.enumerate() {
        let line = line_of(area, 1 + at);
        left.draw(drawing, buffer, (line, 1));
        if has_room {
            right.draw(drawing, buffer, (line, HALF));
        }
    }
}

/// A figure with its name, and a chart or a remark beside it.
struct Figure {
    name: &'static str,
    value: String,
    tone: Tone,
    beside: (String, Tone),
}

impl Figure {
    fn new(name: &'static str, value: String, tone: Tone) -> Self {
        Self { name, value, tone, beside: (String::new(), Tone::Quiet) }
    }

    /// A count, which is quiet if it is zero.
    fn count(name: &'static str, count: u64, tone: Tone) -> Self {
        let tone = if count == 0 { Tone::Quiet } else { tone };
        Self::new(name, count.to_string(), tone)
    }

    fn remark(self, text: String) -> Self {
        Self { beside: (text, Tone::Quiet), ..self }
    }

    fn chart(self, row: &QueueRow, of: fn(&Span) -> u64) -> Self {
        let spans = row.history.spans();
        let values: Vec<_> = spans.iter().map(|span| span.as_ref().map(of)).collect();
        Self { beside: (chart(&values, BESIDE), Tone::Chart), ..self }
    }

    fn draw(
        &self,
        drawing: &Drawing<'_>,
        buffer: &mut Buffer,
        (line, at): (Rect, usize),
    ) {
        drawing.put(buffer, line, at, (self.name, Tone::Quiet));
        drawing.put(buffer, line, at + FIGURE, (&self.value, self.tone));
        let (text, tone) = &self.beside;
        let beside = cut(text.clone(), BESIDE);
        drawing.put(buffer, line, at + CHART, (&beside, *tone));
    }
}

/// The jobs that are stored.
fn stored(row: &QueueRow, stats: &Stats) -> [Figure; 5] {
    let oldest = stats.oldest_ready_age.map(short).unwrap_or_default();
    let next = stats.next_due_in.map(|due| format!("next in {}", short(due)));
    let overdue = (stats.overdue > 0).then(|| format!("{} overdue", stats.overdue));
    [
        Figure::count("ready", stats.ready, Tone::Plain).chart(row, |span| span.ready),
        Figure::new("oldest", oldest, Tone::Plain),
        Figure::count("leased", stats.leased, Tone::Plain)
            .remark(overdue.unwrap_or_default()),
        Figure::count("scheduled", stats.scheduled, Tone::Plain)
            .remark(next.unwrap_or_default()),
        Figure::count("dead", stats.dead, Tone::Bad),
    ]
}

/// The jobs that come and go.
fn flowing(row: &QueueRow, stats: &Stats) -> [Figure; 5] {
    let rates = |of: fn(Rates) -> f64| {
        row.rates.map_or_else(|| "-".to_owned(), |rates| rate(of(rates)))
    };
    let cancelled = format!("{} cancelled", stats.cancelled);
    [
        Figure::new("in /s", rates(|rates| rates.pushed), Tone::Good)
            .chart(row, |span| span.flow.pushed),
        Figure::new("out /s", rates(|rates| rates.ended), Tone::Good)
            .chart(row, |span| span.flow.ended),
        Figure::count("died (5m)", row.died(), Tone::Bad)
            .chart(row, |span| span.flow.died),
        Figure::new("done", stats.finished.to_string(), Tone::Plain),
        Figure::count("discarded", stats.discarded, Tone::Plain).remark(cancelled),
    ]
}

/// The line of the tabs.
fn tabs(
    drawing: &Drawing<'_>,
    (open, row): (Tab, Option<&QueueRow>),
    buffer: &mut Buffer,
    line: Rect,
) {
    let mut at = 1;
    for (number, tab) in (1..).zip(Tab::ALL) {
        let tone = if tab == open { Tone::Chosen } else { Tone::Quiet };
        let text = format!("{number} {}", name_of(tab, row));
        drawing.put(buffer, line, at, (&text, tone));
        at += columns(&text) + 2;
    }
}

fn name_of(tab: Tab, row: Option<&QueueRow>) -> String {
    use relq::operator::JobState;
    let count = row.and_then(|row| row.stats).map(|stats| match tab {
        Tab::Jobs(JobState::Ready) => stats.ready,
        Tab::Jobs(JobState::Leased) => stats.leased,
        Tab::Jobs(JobState::Scheduled) => stats.scheduled,
        Tab::Jobs(JobState::Dead) => stats.dead,
        Tab::Errors | Tab::Workers => 0,
    });
    match count {
        Some(count @ 1..) => format!("{} {count}", tab.name()),
        _ => tab.name().to_owned(),
    }
}
