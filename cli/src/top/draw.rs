//! Draws the state. All text goes through `printable`, so that no payload, name or error
//! reaches the terminal as a command.

mod bottom;
mod help;
mod job;
mod lists;
mod overview;
#[cfg(test)]
mod pictures;
mod queue;
mod spark;
#[cfg(test)]
mod svg;
mod table;
mod text;
mod theme;

use std::time::Instant;

use ratatui::{Frame, buffer::Buffer, layout::Rect};
use relq::environment::Timestamp;

use super::state::{Dialog, State};
use crate::printable::{columns, cut};
use bottom::Status;
use theme::{Theme, Tone};

/// The data that the drawing of each part needs.
#[derive(Clone, Copy)]
struct Drawing<'a> {
    state: &'a State,
    theme: Theme,
    /// The time of this process, for how long something lasts.
    now: Instant,
    /// The time by which the ages of jobs are told.
    clock: Timestamp,
}

/// Draws all that the state shows. Returns how many lines the status takes.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    state: &State,
    now: Instant,
    clock: Timestamp,
) -> usize {
    let theme = Theme::new(state.settings.has_colours);
    let drawing = Drawing { state, theme, now, clock };
    let (whole, buffer) = (frame.area(), frame.buffer_mut());
    let status = Status::new(&drawing, whole);
    let [top, body, keys, bottom] = parts(whole, status.height());
    drawing.title(buffer, top);
    match (&state.dialog, &state.queue) {
        (Some(Dialog::Help), _) => help::draw(&drawing, buffer, body),
        (_, Some(open)) => queue::draw(&drawing, open, buffer, body),
        (_, None) => overview::draw(&drawing, buffer, body),
    }
    bottom::keys(&drawing, buffer, keys);
    status.draw(&drawing, buffer, bottom);
    status.lines.len()
}

/// The title, the page, the keys and the status. A small screen has no line of keys.
fn parts(whole: Rect, status: u16) -> [Rect; 4] {
    let line = |y: u16, height: u16| {
        Rect::new(whole.x, whole.y + y, whole.width, height).intersection(whole)
    };
    let height = whole.height;
    let (keys, status) = match height {
        0..=1 => (0, 0),
        2..=7 => (0, 1),
        _ => (1, status),
    };
    let body = height.saturating_sub(1 + keys + status);
    [line(0, 1), line(1, body), line(1 + body, keys), line(1 + body + keys, status)]
}

impl Drawing<'_> {
    fn title(&self, buffer: &mut Buffer, area: Rect) {
        let state = self.state;
        let mut marks =
            vec![format!("every {}", humantime::format_duration(state.interval))];
        if state.is_frozen {
            marks.push("FROZEN".to_owned());
        }
        if state.settings.is_read_only {
            marks.push("read-only".to_owned());
        }
        let marks = marks.join("  ");
        let store = crate::printable::printable(&state.settings.store);
        let left = format!(" relq top  {store}");
        let room = usize::from(area.width).saturating_sub(columns(&marks) + 2);
        let tone = if state.is_frozen { Tone::Frozen } else { Tone::Title };
        self.fill(buffer, area, tone);
        self.put(buffer, area, 0, (&cut(left, room.max(10)), tone));
        if room > 10 {
            self.put(buffer, area, room + 1, (&marks, tone));
        }
    }

    /// Writes a printable text from a column of the first line of the area. What does not
    /// fit is cut.
    fn put(&self, buffer: &mut Buffer, area: Rect, column: usize, text: (&str, Tone)) {
        let room = usize::from(area.width).saturating_sub(column);
        if room == 0 || area.height == 0 {
            return;
        }
        let x = area.x + u16::try_from(column).unwrap_or(area.width);
        let (text, tone) = text;
        buffer.set_stringn(x, area.y, text, room, self.theme.style(tone));
    }

    fn fill(&self, buffer: &mut Buffer, area: Rect, tone: Tone) {
        buffer.set_style(area, self.theme.style(tone));
    }
}

/// The line of an area that is this far below its first one; empty below the last one.
fn line_of(area: Rect, below: usize) -> Rect {
    match u16::try_from(below) {
        Ok(below) if below < area.height => {
            Rect::new(area.x, area.y + below, area.width, 1)
        }
        _ => Rect::new(area.x, area.y, 0, 0),
    }
}

/// An area without its first lines.
fn below(area: Rect, lines: usize) -> Rect {
    let lines = u16::try_from(lines).unwrap_or(u16::MAX).min(area.height);
    Rect::new(area.x, area.y + lines, area.width, area.height - lines)
}
