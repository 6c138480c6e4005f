//! A table whose columns are as wide as their content needs, and whose lines are not
//! wider than the terminal.

use std::io::{self, IsTerminal};

use crate::{
    failure::CommandResult,
    output::Output,
    printable::{columns, cut},
};

/// The text between two columns of a row. The note below a row is indented by it.
const GAP: &str = "  ";

/// The width of a line in columns if standard output is not a terminal.
const DEFAULT_WIDTH: usize = 200;

/// A table with `COLUMNS` columns. A column in which all cells are empty is left out.
#[derive(Debug)]
pub struct Table<const COLUMNS: usize> {
    rows: Vec<Row<COLUMNS>>,
}

#[derive(Debug)]
struct Row<const COLUMNS: usize> {
    cells: [String; COLUMNS],
    /// Text on the next line below the cells. `None` if there is none.
    note: Option<String>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Creates a table that has these column heads and no rows yet.
    pub fn new(heads: [&str; COLUMNS]) -> Self {
        Self { rows: vec![Row { cells: heads.map(str::to_owned), note: None }] }
    }

    /// Adds a row. Its cells and its note must be printable text.
    pub fn row(&mut self, cells: [String; COLUMNS], note: Option<String>) {
        self.rows.push(Row { cells, note });
    }

    /// Prints the table on standard output. Each line is cut to [`line_width`].
    ///
    /// # Errors
    /// When standard output cannot be written to.
    pub fn print(&self) -> CommandResult {
        let mut out = Output::new();
        out.text(&self.render(line_width()))?;
        out.flush()
    }

    /// Returns the table as text. Each line is cut to `width` columns.
    pub fn render(&self, width: usize) -> String {
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| columns(&row.cells[column]));
            // Pad no column beyond the end of the line, because the rest of the line is
            // cut.
            cells.max().unwrap_or(0).min(width)
        });
        let mut text = String::new();
        for line in self.rows.iter().flat_map(|row| row.lines(widths)) {
            text.push_str(&cut(line, width));
            text.push('\n');
        }
        text
    }
}

impl<const COLUMNS: usize> Row<COLUMNS> {
    fn lines(&self, widths: [usize; COLUMNS]) -> impl Iterator<Item = String> {
        let mut line = String::new();
        for (cell, wide) in self.cells.iter().zip(widths).filter(|(_, wide)| *wide > 0)
        {
            line.push_str(cell);
            let blanks = wide.saturating_sub(columns(cell));
            line.extend(std::iter::repeat_n(' ', blanks));
            line.push_str(GAP);
        }
        line.truncate(line.trim_end().len());
        let note = self.note.as_ref().map(|note| format!("{GAP}{note}"));
        std::iter::once(line).chain(note)
    }
}

/// Returns the width of a line of standard output: the width of the terminal, or 200
/// columns without a terminal.
pub fn line_width() -> usize {
    terminal_width().unwrap_or(DEFAULT_WIDTH)
}

fn terminal_width() -> Option<usize> {
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
    fn columns_line_up_and_end_with_the_line() {
        let mut table = Table::new(["ID", "", "PAYLOAD"]);
        let cells = ["a-1", "", "hello world"].map(str::to_owned);
        table.row(cells, Some("held by nobody".to_owned()));
        let whole = "ID   PAYLOAD\na-1  hello world\n  held by nobody\n";
        assert_eq!(table.render(80), whole);
        assert_eq!(table.render(9), "ID   PAY…\na-1  hel…\n  held b…\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut table = Table::new(["ID", "PAYLOAD"]);
        table.row(["漢字", "a"].map(str::to_owned), None);
        table.row(["e\u{301}", "b"].map(str::to_owned), None);
        assert_eq!(table.render(80), "ID    PAYLOAD\n漢字  a\ne\u{301}     b\n");
    }

    #[test]
    fn a_cell_of_any_length_fills_no_other_row() {
        let mut table = Table::new(["ID", "PAYLOAD"]);
        table.row(["x".repeat(70_000), "a".to_owned()], None);
        table.row(["b", "c"].map(str::to_owned), None);
        assert!(table.render(40).lines().all(|line| columns(line) <= 40));
    }
}
