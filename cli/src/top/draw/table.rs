//! Tables that fit the screen: the least important columns are left out first.

use ratatui::{buffer::Buffer, layout::Rect};

use super::{Drawing, Tone, below, line_of};
use crate::printable::{columns, cut};

/// The blanks between two columns.
const GAP: usize = 2;

/// The widest a column is, unless it takes the rest of the line.
const WIDEST: usize = 36;

/// The columns that the one that takes the rest has at least.
const LEAST_REST: usize = 16;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) head: &'static str,
    pub(super) fit: Fit,
    /// Columns with a high number are left out first, and those with 0 never.
    pub(super) rank: u8,
}

/// How a column uses its room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Left,
    /// A number.
    Right,
    /// It takes the rest of the line.
    Rest,
}

/// A short form for the tables of columns.
pub(super) const fn column(head: &'static str, fit: Fit, rank: u8) -> Column {
    Column { head, fit, rank }
}

/// A printable text of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
}

impl Cell {
    pub(super) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }

    pub(super) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Tone::Plain)
    }

    /// A count, which is quiet if it is zero.
    pub(super) fn count(count: u64, tone: Tone) -> Self {
        Self::new(count.to_string(), if count == 0 { Tone::Quiet } else { tone })
    }
}

/// A table with a selected row.
pub(super) struct Table<'a> {
    pub(super) columns: &'a [Column],
    pub(super) rows: Vec<Vec<Cell>>,
    pub(super) selected: usize,
    /// The column by which the rows are sorted.
    pub(super) sorted: Option<usize>,
}

impl Table<'_> {
    /// Draws the heads and as many rows as fit, the selected one among them.
    pub(super) fn draw(&self, drawing: &Drawing<'_>, buffer: &mut Buffer, area: Rect) {
        let widths = self.widths(usize::from(area.width));
        let heads: Vec<_> = self.heads();
        self.line(drawing, buffer, (line_of(area, 0), &widths), &heads);
        let area = below(area, 1);
        let height = usize::from(area.height);
        // Scroll only as far as the selected row requires.
        let selected = self.selected.min(self.rows.len().saturating_sub(1));
        let first = (selected + 1).saturating_sub(height);
        for (at, row) in self.rows.iter().enumerate().skip(first).take(height) {
            let line = line_of(area, at - first);
            self.line(drawing, buffer, (line, &widths), row);
            if at == selected {
                drawing.fill(buffer, line, Tone::Selected);
            }
        }
    }

    fn heads(&self) -> Vec<Cell> {
        let tone = |at| {
            if self.sorted == Some(at) { Tone::Chosen } else { Tone::Head }
        };
        let head = |(at, column): (usize, &Column)| Cell::new(column.head, tone(at));
        self.columns.iter().enumerate().map(head).collect()
    }

    /// The width of each column; `None` for one that is left out.
    fn widths(&self, width: usize) -> Vec<Option<usize>> {
        let mut widths: Vec<_> =
            (0..self.columns.len()).map(|at| Some(self.wanted(at))).collect();
        while total(&widths) > width {
            let is_shown =
                |at: &usize| widths[*at].is_some() && self.columns[*at].rank > 0;
            let least = (0..widths.len()).filter(is_shown);
            let Some(least) = least.max_by_key(|at| self.columns[*at].rank) else {
                break;
            };
            widths[least] = None;
        }
        let rest = self.columns.iter().position(|column| column.fit == Fit::Rest);
        if let Some(rest) = rest.filter(|rest| widths[*rest].is_some()) {
            let others = total(&widths) - widths[rest].unwrap_or(0);
            widths[rest] = Some(width.saturating_sub(others));
        }
        widths
    }

    fn wanted(&self, at: usize) -> usize {
        let column = self.columns[at];
        if column.fit == Fit::Rest {
            return LEAST_REST;
        }
        let cells = self.rows.iter().map(|row| columns(&row[at].text));
        cells.max().unwrap_or(0).max(column.head.len()).min(WIDEST)
    }

    fn line(
        &self,
        drawing: &Drawing<'_>,
        buffer: &mut Buffer,
        (line, widths): (Rect, &[Option<usize>]),
        cells: &[Cell],
    ) {
        let mut from = 1;
        for ((cell, column), wide) in cells.iter().zip(self.columns).zip(widths) {
            let Some(wide) = *wide else { continue };
            let text = cut(cell.text.clone(), wide);
            let pad = match column.fit {
                Fit::Right => wide.saturating_sub(columns(&text)),
                Fit::Left | Fit::Rest => 0,
            };
            drawing.put(buffer, line, from + pad, (&text, cell.tone));
            from += wide + GAP;
        }
    }
}

/// The columns that a line needs, with a blank at each end.
fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<_> = widths.iter().flatten().collect();
    2 + shown.iter().copied().sum::<usize>() + GAP * shown.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 4] = [
        column("ID", Fit::Left, 0),
        column("TRY", Fit::Right, 2),
        column("HOST", Fit::Left, 1),
        column("PAYLOAD", Fit::Rest, 0),
    ];

    fn table() -> Table<'static> {
        let row = ["job-1", "3", "host-1.example", "hello"].map(Cell::plain);
        Table { columns: &COLUMNS, rows: vec![row.into()], selected: 0, sorted: None }
    }

    #[test]
    fn the_rest_of_the_line_is_used() {
        let widths = table().widths(80);
        assert_eq!(widths, [Some(5), Some(3), Some(14), Some(50)]);
        assert_eq!(total(&widths), 80);
    }

    #[test]
    fn a_narrow_screen_has_fewer_columns() {
        assert_eq!(table().widths(44), [Some(5), None, Some(14), Some(19)]);
        assert_eq!(table().widths(30), [Some(5), None, None, Some(21)]);
        assert_eq!(table().widths(10), [Some(5), None, None, Some(1)]);
        assert_eq!(table().widths(0), [Some(5), None, None, Some(0)]);
    }
}
