//! The help of the keys.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Drawing, Tone, below, line_of};
use crate::top::keys::HELP;

/// The width of the keys.
const KEYS: usize = 12;

const REMARKS: [&str; 2] = [
    "IN/S and OUT/S are of the last 10 s, DIED and the charts of the last 5 minutes.",
    "What cannot be undone asks first, and only y says yes.",
];

pub(super) fn draw(drawing: &Drawing<'_>, buffer: &mut Buffer, area: Rect) {
    drawing.put(buffer, line_of(area, 0), 1, ("Keys", Tone::Chosen));
    let lines = below(area, 1);
    for (at, (keys, what)) in HELP.into_iter().enumerate() {
        let line = line_of(lines, at);
        drawing.put(buffer, line, 1, (keys, Tone::Key));
        drawing.put(buffer, line, 1 + KEYS, (what, Tone::Plain));
    }
    for (at, remark) in REMARKS.into_iter().enumerate() {
        let line = line_of(lines, HELP.len() + 1 + at);
        drawing.put(buffer, line, 1, (remark, Tone::Quiet));
    }
}
