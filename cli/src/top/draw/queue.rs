//! An open queue: its counts with small charts, its tabs, and the list of the open one.

use ratatui::{buffer::Buffer, layout::Rect};
use relq::{Stats, operator::Span};

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
    for (at, [left, right]) in figures(row, &stats).into_iter().enumerate() {
        let line = line_of(area, 1 + at);
        left.draw(drawing, buffer, (line, 1));
        if usize::from(area.width) >= 2 * HALF - 8 {
            right.draw(drawing, buffer, (line, HALF));
        }
    }
}

/// A figure with its name and its chart.
struct Figure {
    name: &'static str,
    value: String,
    tone: Tone,
    /// The chart, or a remark.
    beside: String,
}

impl Figure {
    fn draw(
        &self,
        drawing: &Drawing<'_>,
        buffer: &mut Buffer,
        (line, at): (Rect, usize),
    ) {
        drawing.put(buffer, line, at, (self.name, Tone::Quiet));
        drawing.put(buffer, line, at + FIGURE, (&self.value, self.tone));
        let beside = cut(self.beside.clone(), HALF - CHART - 2);
        drawing.put(buffer, line, at + CHART, (&beside, Tone::Chart));
    }
}

fn figures(row: &QueueRow, stats: &Stats) -> [[Figure; 2]; 5] {
    let spans = row.history.spans();
    let drawn = |of: fn(&Span) -> u64| {
        let values: Vec<_> = spans.iter().map(|span| span.as_ref().map(of)).collect();
        chart(&values, HALF - CHART - 2)
    };
    let figure = |name, value: String, tone, beside: String| Figure {
        name,
        value,
        tone,
        beside,
    };
    let count = |name, count: u64, tone, beside: String| {
        let tone = if count == 0 { Tone::Quiet } else { tone };
        figure(name, count.to_string(), tone, beside)
    };
    let some = |length: Option<_>, word: &str| {
        length.map(|it| format!("{word}{}", short(it))).unwrap_or_default()
    };
    let rates = row.rates.map(|rates| (rate(rates.pushed), rate(rates.ended)));
    let (pushed, ended) = rates.unwrap_or(("-".to_owned(), "-".to_owned()));
    let overdue = match stats.overdue {
        0 => String::new(),
        overdue => format!("{overdue} overdue"),
    };
    let done = stats.finished.to_string();
    let others = format!("{} / {}", stats.discarded, stats.cancelled);
    [
        [
            count("ready", stats.ready, Tone::Plain, drawn(|span| span.ready)),
            figure("in /s", pushed, Tone::Good, drawn(|span| span.flow.pushed)),
        ],
        [
            figure(
                "oldest",
                some(stats.oldest_ready_age, ""),
                Tone::Plain,
                String::new(),
            ),
            figure("out /s", ended, Tone::Good, drawn(|span| span.flow.ended)),
        ],
        [
            count("leased", stats.leased, Tone::Plain, overdue),
            count("died (5m)", row.died(), Tone::Bad, drawn(|span| span.flow.died)),
        ],
        [
            count(
                "scheduled",
                stats.scheduled,
                Tone::Plain,
                some(stats.next_due_in, "next in "),
            ),
            figure("done", done, Tone::Plain, String::new()),
        ],
        [
            count("dead", stats.dead, Tone::Bad, String::new()),
            figure("dropped", others, Tone::Quiet, "discarded / cancelled".to_owned()),
        ],
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
