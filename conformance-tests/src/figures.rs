//! Checks that a table of measured figures in the documentation still agrees with new
//! measurements.

use std::{collections::BTreeMap, env, fmt, fs, path::PathBuf};

/// The environment variable that, with the value `write`, makes
/// [`FiguresTable::check`] write the table in place of checking it.
const WRITE: &str = "COSTS";

/// The figures of each backend, by the backend's name. They are in the order of the
/// table's columns.
pub type Figures = BTreeMap<String, Vec<f64>>;

/// A table of figures on a page, between the marks `<!-- NAME: begin -->` and
/// `<!-- NAME: end -->`.
#[derive(Debug, Clone)]
pub struct FiguresTable<'a> {
    /// The path of the Markdown file that contains the table.
    pub page: PathBuf,
    /// The `NAME` in the two marks around the table.
    pub name: &'a str,
    /// The headings of the columns, without the first column, which names the backend.
    pub columns: &'a [&'a str],
    /// Returns by which share a measured figure may differ from the page, for the
    /// column with that heading. For example, 0.1 allows ten percent.
    pub tolerance: fn(&str) -> f64,
    /// The command that measures the figures, without `COSTS=write`. Failure messages
    /// show it.
    pub command: &'a str,
}

impl FiguresTable<'_> {
    /// Asserts that the page has the measured figures. With `COSTS=write` in the
    /// environment it writes them to the page instead.
    ///
    /// # Panics
    /// When a figure differs by more than its tolerance, and when the page cannot be
    /// read or has no such marks.
    pub fn check(&self, measured: &Figures) {
        let path = self.page.display();
        let page = fs::read_to_string(&self.page)
            .unwrap_or_else(|error| panic!("{path}: {error}"));
        if env::var(WRITE).is_ok_and(|value| value == "write") {
            let written = fs::write(&self.page, self.written_into(&page, measured));
            return written.unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        let differences = self.differences(measured, &self.read(&page));
        assert!(
            differences.is_empty(),
            "{path} says otherwise: {differences:#?}\n{}\nif that is meant, write it with \
             {WRITE}=write {}",
            self.table(measured),
            self.command
        );
    }

    fn table(&self, measured: &Figures) -> String {
        let mut table = format!("| | {} |\n", self.columns.join(" | "));
        table.push_str(&format!("|---|{}\n", "--:|".repeat(self.columns.len())));
        for (backend, figures) in measured {
            let cells: Vec<_> =
                figures.iter().map(|it| Shown(*it).to_string()).collect();
            table.push_str(&format!("| {backend} | {} |\n", cells.join(" | ")));
        }
        table
    }

    fn written_into(&self, page: &str, measured: &Figures) -> String {
        let [head, _, tail] = self.parts(page);
        format!("{head}{}{tail}", self.table(measured))
    }

    fn read(&self, page: &str) -> Figures {
        let [_, table, _] = self.parts(page);
        let row = |line: &str| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let backend = cells.next().unwrap_or_default().to_owned();
            (backend, cells.filter_map(|cell| cell.parse().ok()).collect())
        };
        table.lines().skip(2).map(row).collect()
    }

    /// Splits the page into three parts: the text up to the end of the first mark, the
    /// table, and the text from the second mark on.
    fn parts<'p>(&self, page: &'p str) -> [&'p str; 3] {
        let begin = format!("<!-- {}: begin -->\n", self.name);
        let end = format!("<!-- {}: end -->", self.name);
        let mark = |mark: &str, from: usize| {
            let at = page[from..].find(mark).map(|at| from + at);
            at.unwrap_or_else(|| panic!("{} lacks {mark}", self.page.display()))
        };
        let from = mark(&begin, 0) + begin.len();
        let to = mark(&end, from);
        [&page[..from], &page[from..to], &page[to..]]
    }

    fn differences(&self, measured: &Figures, written: &Figures) -> Vec<String> {
        let mut all = Vec::new();
        for (backend, figures) in measured {
            let expected = written.get(backend).map_or(&[][..], Vec::as_slice);
            for (at, (column, figure)) in self.columns.iter().zip(figures).enumerate() {
                let expected = expected.get(at).copied().unwrap_or(f64::NAN);
                let most = (self.tolerance)(column) * expected.abs();
                let is_near = (figure - expected).abs() <= most;
                if !is_near {
                    let figure = Shown(*figure);
                    all.push(format!("{backend}, {column}: {figure}, not {expected}"));
                }
            }
        }
        all
    }
}

/// Prints a figure in the form that the table uses.
struct Shown(f64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 >= 10.0 || self.0.fract() == 0.0 {
            write!(f, "{:.0}", self.0)
        } else {
            write!(f, "{:.3}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: FiguresTable<'_> = FiguresTable {
        page: PathBuf::new(),
        name: "costs",
        columns: &["commands", "bytes"],
        tolerance: |column| if column == "bytes" { 0.1 } else { 0.0 },
        command: "cargo test",
    };
    const PAGE: &str = "a\n<!-- costs: begin -->\nold\n<!-- costs: end -->\nb\n";

    fn of_zset(figures: [f64; 2]) -> Figures {
        [("zset".to_owned(), figures.into())].into()
    }

    #[test]
    fn written_figures_are_read_again() {
        let measured = of_zset([1.25, 100.0]);

        let page = TABLE.written_into(PAGE, &measured);

        assert_eq!(
            page,
            "a\n<!-- costs: begin -->\n| | commands | bytes |\n|---|--:|--:|\n\
             | zset | 1.250 | 100 |\n<!-- costs: end -->\nb\n"
        );
        assert_eq!(TABLE.read(&page), measured);
    }

    #[test]
    fn a_difference_beyond_the_tolerance_is_reported() {
        let written = of_zset([2.0, 100.0]);
        let told = |measured| TABLE.differences(&measured, &written);

        assert_eq!(told(of_zset([2.0, 109.0])), [""; 0]);
        assert_eq!(told(of_zset([3.0, 111.0])).len(), 2);
        let unknown = TABLE.differences(&written, &Figures::new());
        assert_eq!(unknown.len(), 2, "a backend that the page lacks differs");
    }
}
