//! Rows in columns, each as wide as it must be and the line no wider than the
//! terminal.

use std::io::{self, IsTerminal};

use crate::view::cut;

/// Between two columns.
const GAP: &str = "  ";

/// Rows of `COLUMNS` cells. The last is cut where the terminal ends.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    pub(crate) fn new(heads: [&str; COLUMNS]) -> Self {
        Self { rows: vec![heads.map(str::to_owned)] }
    }

    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    /// The rows as text; nothing is cut when `width` is `None`.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths: [usize; COLUMNS] = std::array::from_fn(|column| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        });
        let mut text = String::new();
        for row in &self.rows {
            let cells = row.iter().zip(widths).filter(|(_, wide)| *wide > 0);
            let line: Vec<_> =
                cells.map(|(cell, wide)| format!("{cell:<wide$}")).collect();
            let line = line.join(GAP);
            let line = line.trim_end();
            text.push_str(&width.map_or(line.into(), |width| cut(line, width)));
            text.push('\n');
        }
        text
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
        table.row(["a-1".into(), String::new(), "hello world".into()]);
        assert_eq!(table.render(None), "ID   PAYLOAD\na-1  hello world\n");
        assert_eq!(table.render(Some(9)), "ID   PAY…\na-1  hel…\n");
    }
}
