//! Edits a Markdown table with named rows and columns: it can replace one row or one
//! column and keep the others.

use std::fmt;

/// A table whose first column holds the names of the rows. Cells must not contain `|`.
#[derive(Debug)]
pub(super) struct Grid {
    corner: String,
    heads: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    name: String,
    cells: Vec<String>,
}

impl Grid {
    /// Creates a table that has no rows yet.
    pub(super) fn new<const COLUMNS: usize>(
        corner: &str,
        heads: [&str; COLUMNS],
    ) -> Self {
        let heads = heads.map(str::to_owned).into();
        Self { corner: corner.to_owned(), heads, rows: Vec::new() }
    }

    /// Parses the table at the start of a text. Returns an empty table if the text does
    /// not begin with one. `corner` is the heading of the first column.
    pub(super) fn parse(text: &str, corner: &str) -> Self {
        let mut lines = text.lines().filter_map(words);
        let mut grid = Self::new(corner, []);
        grid.heads = lines.next().map(|(_, heads)| heads).unwrap_or_default();
        // This is the line `|---|---|` between the headings and the rows.
        lines.next();
        for (name, mut cells) in lines {
            cells.resize(grid.heads.len(), String::new());
            grid.rows.push(Row { name, cells });
        }
        grid
    }

    /// Replaces the headings of the columns, apart from the first column.
    pub(super) fn set_heads<const COLUMNS: usize>(&mut self, heads: [&str; COLUMNS]) {
        self.heads = heads.map(str::to_owned).into();
    }

    /// Replaces the row of that name, or adds it at the end.
    pub(super) fn row<const COLUMNS: usize>(
        &mut self,
        name: &str,
        cells: [String; COLUMNS],
    ) {
        let cells = cells.into();
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.cells = cells,
            None => self.rows.push(Row { name: name.to_owned(), cells }),
        }
    }

    /// Replaces the column of that name, or adds it at the end. A new row is inserted
    /// after the row that precedes it in `column`. A row without cells is removed.
    pub(super) fn set_column(&mut self, head: &str, column: Vec<(&str, String)>) {
        let at = self.place_of(head);
        for row in &mut self.rows {
            row.cells[at].clear();
        }
        let mut next = 0;
        for (name, cell) in column {
            let known = self.rows.iter().position(|row| row.name == name);
            let place = known.unwrap_or_else(|| {
                let cells = vec![String::new(); self.heads.len()];
                self.rows.insert(next, Row { name: name.to_owned(), cells });
                next
            });
            self.rows[place].cells[at] = cell;
            next = place + 1;
        }
        self.rows.retain(|row| row.cells.iter().any(|cell| !cell.is_empty()));
    }

    fn place_of(&mut self, head: &str) -> usize {
        if let Some(at) = self.heads.iter().position(|known| known == head) {
            return at;
        }
        self.heads.push(head.to_owned());
        self.rows.iter_mut().for_each(|row| row.cells.push(String::new()));
        self.heads.len() - 1
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| {} | {} |", self.corner, self.heads.join(" | "))?;
        writeln!(f, "|---|{}", "--:|".repeat(self.heads.len()))?;
        let mut rows = self.rows.iter();
        rows.try_for_each(|Row { name, cells }| {
            writeln!(f, "| {name} | {} |", cells.join(" | "))
        })
    }
}

/// Splits a line of a table into its first cell and the other cells. Returns `None` if
/// the line does not belong to a table.
fn words(line: &str) -> Option<(String, Vec<String>)> {
    let line = line.trim().strip_prefix('|')?;
    let mut cells = line.strip_suffix('|').unwrap_or(line).split('|');
    let name = cells.next()?.trim().to_owned();
    Some((name, cells.map(|cell| cell.trim().to_owned()).collect()))
}
