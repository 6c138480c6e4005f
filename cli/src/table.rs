//! Rows in columns, each as wide as it must be and the line no wider than the
//! terminal.

use std::io::{self, IsTerminal};

use crate::view::cut;

/// Between two columns, and before a note.
const GAP: &str = "  ";

/// Rows of `COLUMNS` cells. A column without a cell that says something is left out.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<Row<COLUMNS>>,
}

#[derive(Debug)]
struct Row<const COLUMNS: usize> {
    cells: [String; COLUMNS],
    /// A line of its own below the cells.
    note: Option<String>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heads: [&str; COLUMNS]) -> Self {
        Self { rows: vec![Row { cells: heads.map(str::to_owned), note: None }] }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS], note: Option<String>) {
        self.rows.push(Row { cells, note });
    }

    /// The rows as text, each line cut to `width` if there is one.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row.cells[column].chars().count());
            cells.max().unwrap_or(0)
        });
        let mut text = String::new();
        for line in self.rows.iter().flat_map(|row| row.lines(widths)) {
            let line = line.trim_end();
            text.push_str(&width.map_or(line.into(), |width| cut(line, width)));
            text.push('\n');
        }
        text
    }
}

impl<const COLUMNS: usize> Row<COLUMNS> {
    fn lines(&self, widths: [usize; COLUMNS]) -> impl Iterator<Item = String> {
        let cells = self.cells.iter().zip(widths).filter(|(_, wide)| *wide > 0);
        let cells: Vec<_> =
            cells.map(|(cell, wide)| format!("{cell:<wide$}")).collect();
        let note = self.note.as_ref().map(|note| format!("{GAP}{note}"));
        std::iter::once(cells.join(GAP)).chain(note)
    }
}

/// How many characters a line of standard output holds; `None` when it is no
/// terminal.
pub(crate) fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(stdout).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_end_with_the_terminal() {
        let mut table = Table::new(["ID", "", "PAYLOAD"]);
        let cells = ["a-1", "", "hello world"].map(str::to_owned);
        table.row(cells, Some("held by nobody".to_owned()));
        let whole = "ID   PAYLOAD\na-1  hello world\n  held by nobody\n";
        assert_eq!(table.render(None), whole);
        assert_eq!(table.render(Some(9)), "ID   PAY…\na-1  hel…\n  held b…\n");
    }
}
