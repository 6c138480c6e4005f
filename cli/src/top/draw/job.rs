//! One job with all that is stored of it.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Drawing, Tone, below, line_of};
use crate::{
    printable::printable,
    top::open_queue::{OpenJob, OpenQueue},
};

/// The width of the names of the properties in a record.
const NAMES: usize = 12;

pub(super) fn draw(
    drawing: &Drawing<'_>,
    open: &OpenQueue,
    opened: &OpenJob,
    buffer: &mut Buffer,
    area: Rect,
) {
    let name = printable(open.name.as_str());
    let title = format!("{name}: a job");
    drawing.put(buffer, line_of(area, 0), 1, (&title, Tone::Chosen));
    if let Some(gone) = &opened.gone {
        let at = crate::printable::columns(&title) + 3;
        drawing.put(buffer, line_of(area, 0), at, (gone, Tone::Warning));
    }
    let area = below(area, 1);
    let lines = opened.lines(usize::from(area.width));
    let shown = lines.iter().skip(opened.scroll).take(usize::from(area.height));
    for (at, text) in shown.enumerate() {
        let line = line_of(area, at);
        let named = text.split_at_checked(NAMES).filter(|(name, _)| is_name(name));
        match named {
            Some((name, value)) => {
                drawing.put(buffer, line, 1, (name, Tone::Head));
                drawing.put(buffer, line, 1 + NAMES, (value, Tone::Plain));
            }
            None => drawing.put(buffer, line, 1, (text, Tone::Plain)),
        }
    }
}

/// Whether the first columns of a line are the name of a property. If they are not, the
/// line is the rest of a long one.
fn is_name(beginning: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == ' ';
    beginning.ends_with(' ') && beginning.chars().all(is_of_name)
}
