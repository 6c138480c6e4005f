//! The lines at the bottom: the keys of the page, and the status or a question.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Drawing, Tone, line_of, text::short};
use crate::{
    printable::{columns, cut, printable, wrapped},
    top::state::{Dialog, State},
};

/// The status takes at most one line for so many lines of the screen.
const LINES_FOR_ONE_OF_STATUS: u16 = 6;

const QUEUES: &[(&str, &str)] = &[
    ("Enter", "open"),
    ("p", "pause"),
    ("s", "sort"),
    ("/", "filter"),
    ("Space", "freeze"),
    ("?", "help"),
    ("q", "quit"),
];
const QUEUE: &[(&str, &str)] = &[
    ("Enter", "open"),
    ("1-6", "lists"),
    ("r", "retry"),
    ("x", "delete"),
    ("p", "pause"),
    ("/", "filter"),
    ("?", "help"),
    ("q", "back"),
];
const JOB: &[(&str, &str)] =
    &[("↑↓", "scroll"), ("r", "retry"), ("x", "delete"), ("?", "help"), ("q", "back")];

/// The most important keys of the page.
pub(super) fn keys(drawing: &Drawing<'_>, buffer: &mut Buffer, area: Rect) {
    let keys = match &drawing.state.queue {
        None => QUEUES,
        Some(open) if open.job.is_some() => JOB,
        Some(_) => QUEUE,
    };
    let mut at = 1;
    for (key, what) in keys {
        let end = at + columns(key) + 1 + what.len();
        if end > usize::from(area.width) {
            return;
        }
        drawing.put(buffer, area, at, (key, Tone::Key));
        drawing.put(buffer, area, end - what.len(), (what, Tone::Quiet));
        at = end + 2;
    }
}

/// The text of the status, in the lines that it takes.
pub(super) struct Status {
    pub(super) lines: Vec<String>,
    tone: Tone,
}

impl Status {
    /// A question, or what has happened, or how many queues are shown. The reason of an
    /// outage may be long, so it goes on in further lines if the screen has room for them.
    pub(super) fn new(drawing: &Drawing<'_>, screen: Rect) -> Self {
        let (text, tone) = line(drawing);
        let width = usize::from(screen.width).saturating_sub(2);
        let most = usize::from(screen.height / LINES_FOR_ONE_OF_STATUS).max(1);
        let mut lines = wrapped(&text, width);
        if lines.len() > most {
            let rest = lines.split_off(most - 1).concat();
            lines.push(cut(rest, width));
        }
        Self { lines, tone }
    }

    pub(super) fn height(&self) -> u16 {
        u16::try_from(self.lines.len()).unwrap_or(u16::MAX)
    }

    pub(super) fn draw(&self, drawing: &Drawing<'_>, buffer: &mut Buffer, area: Rect) {
        for (at, text) in self.lines.iter().enumerate() {
            drawing.put(buffer, line_of(area, at), 1, (text, self.tone));
        }
    }
}

fn line(drawing: &Drawing<'_>) -> (String, Tone) {
    let state = drawing.state;
    match &state.dialog {
        Some(Dialog::Confirm(queue, change)) => {
            let question = change.question().unwrap_or_default();
            return (
                format!("{}: {question} y/N", printable(queue.as_str())),
                Tone::Warning,
            );
        }
        Some(Dialog::Filter(text)) => {
            return (format!("/{}▏", printable(text)), Tone::Plain);
        }
        Some(Dialog::Help) => {
            return ("any key closes the help".to_owned(), Tone::Quiet);
        }
        None => {}
    }
    if let Some(notice) = &state.notice {
        let tone = if notice.is_bad { Tone::Bad } else { Tone::Good };
        return (printable(&notice.text), tone);
    }
    if let Some((since, why)) = &state.outage {
        let lasts = short(drawing.now.saturating_duration_since(*since));
        return (format!("the store cannot be read for {lasts}: {why}"), Tone::Bad);
    }
    if let Some(waited) = state.waiting(drawing.now) {
        let text = format!("waiting for the store for {}", short(waited));
        return (text, Tone::Warning);
    }
    if let Some(trouble) = state.queue.as_ref().and_then(|open| open.trouble.as_ref()) {
        return (trouble.clone(), Tone::Bad);
    }
    (shown(state), Tone::Quiet)
}

/// How many queues the store has, and how many of them the list shows.
fn shown(state: &State) -> String {
    let overview = &state.overview;
    let Some(all) = overview.all else { return String::new() };
    let mut text = format!("{all} queue{}", if all == 1 { "" } else { "s" });
    let sampled = overview.sampled();
    if sampled < all {
        text.push_str(&format!(", the first {sampled} are read"));
    }
    if !overview.filter.is_empty() {
        let filter = printable(&overview.filter);
        text.push_str(&format!(", {} with {filter:?} shown", overview.rows().len()));
    }
    text
}
