//! Writes a report into a document: replaces the text between marks and keeps the rest.
//!
//! ```text
//! <!-- conformance of NAME: begin -->   a table of this backend only
//! <!-- conformance matrix: begin -->    one column per backend, one row per topic
//! <!-- conformance summary: begin -->   one row per backend
//! ```
//!
//! Each section ends with the same mark, with `end` for `begin`. A matrix or a summary
//! covers many backends: a report replaces the column or row of its own backend and
//! keeps the others. So reports can be written in any order.

use std::{
    fs::File,
    io::{Error, ErrorKind, Read, Result, Seek, Write},
    path::Path,
};

use super::{Counts, Report, grid::Grid};

/// The name of the table row that holds the totals of the report.
const ALL: &str = "**all**";

const MATRIX: &str = "matrix";
const SUMMARY: &str = "summary";
const SUMMARY_HEADS: [&str; 5] =
    ["backend", "cases", "passed", "failed", "unsupported"];

impl Report {
    /// Returns this report as a Markdown table. It contains only columns that are the
    /// same in each run. The number of steps is left out, because a waiting claim takes
    /// more steps in some runs.
    pub fn markdown(&self) -> String {
        let [_, heads @ ..] = SUMMARY_HEADS;
        let mut grid = Grid::new(self.backend, heads);
        for (topic, counts) in self.rows() {
            grid.row(&topic, cells(&counts));
        }
        grid.to_string()
    }

    /// Writes the report to `file`, between each pair of marks that concerns it. If the
    /// file is new or empty, it gets the table of this backend, with its marks.
    ///
    /// Several processes may write reports to one file at the same time.
    ///
    /// # Errors
    /// When the file cannot be read or written, or has text and no marks.
    pub fn write_markdown(&self, file: &Path) -> Result<()> {
        let mut options = File::options();
        let mut open =
            options.read(true).write(true).create(true).truncate(false).open(file)?;
        // The lock keeps another process from writing between the read and the write
        // here, because its change would then be lost.
        open.lock()?;
        let mut text = String::new();
        open.read_to_string(&mut text)?;
        let text = self.written_into(&text).map_err(|problem| {
            Error::new(ErrorKind::InvalidData, format!("{}: {problem}", file.display()))
        })?;
        open.rewind()?;
        open.set_len(0)?;
        open.write_all(text.as_bytes())
    }

    /// Returns the document `text` with this report in it.
    fn written_into(&self, text: &str) -> std::result::Result<String, String> {
        let alone = format!("of {}", self.backend);
        if text.trim().is_empty() {
            return Ok(format!("{}{}{}", begin(&alone), self.markdown(), end(&alone)));
        }
        let mut written = text.to_owned();
        let mut is_marked = false;
        let mut replace = |section: &str, table: &dyn Fn(&str) -> String| {
            if let Some((from, to)) = between_marks(&written, section) {
                written.replace_range(from..to, &table(&written[from..to]));
                is_marked = true;
            }
        };
        replace(&alone, &|_| self.markdown());
        replace(MATRIX, &|table| self.in_matrix(table));
        replace(SUMMARY, &|table| self.in_summary(table));
        if is_marked {
            return Ok(written);
        }
        let (begin, end) = (begin(&alone), end(&alone));
        Err(format!(
            "the text has no marks for the report of {}; add the lines {} and {}",
            self.backend,
            begin.trim_end(),
            end.trim_end()
        ))
    }

    fn in_matrix(&self, table: &str) -> String {
        let mut grid = Grid::parse(table, "topic");
        let rows = self.rows();
        let column = rows.iter().map(|(topic, counts)| (&**topic, matrix_cell(counts)));
        grid.set_column(self.backend, column.collect());
        grid.to_string()
    }

    fn in_summary(&self, table: &str) -> String {
        let [corner, heads @ ..] = SUMMARY_HEADS;
        let mut grid = Grid::parse(table, corner);
        grid.set_heads(heads);
        grid.row(self.backend, cells(&self.counts()));
        grid.to_string()
    }

    /// Returns one row for each topic, with its name and counts, and then the row of
    /// totals.
    fn rows(&self) -> Vec<(String, Counts)> {
        let topics = self.topics().into_iter();
        let topics = topics.map(|(topic, counts)| (topic.to_owned(), counts));
        topics.chain([(ALL.to_owned(), self.counts())]).collect()
    }
}

fn cells(counts: &Counts) -> [String; 4] {
    let Counts { cases, passed, failed, unsupported, .. } = *counts;
    [cases, passed, failed, unsupported].map(|count| count.to_string())
}

/// Returns the text that the matrix shows for a topic: `12` if all promises were kept,
/// otherwise `10 of 12` or `10 of 12, 1 failed`.
fn matrix_cell(counts: &Counts) -> String {
    let Counts { cases, passed, failed, .. } = *counts;
    match (passed == cases, failed) {
        (true, _) => passed.to_string(),
        (false, 0) => format!("{passed} of {cases}"),
        (false, _) => format!("{passed} of {cases}, {failed} failed"),
    }
}

fn begin(section: &str) -> String {
    format!("<!-- conformance {section}: begin -->\n")
}

fn end(section: &str) -> String {
    format!("<!-- conformance {section}: end -->\n")
}

/// Returns the offsets at which the table of a section begins and ends, or `None` if
/// the text does not have the marks of that section.
fn between_marks(text: &str, section: &str) -> Option<(usize, usize)> {
    let begin = begin(section);
    let from = text.find(&begin)? + begin.len();
    let to = from + text[from..].find(&end(section))?;
    Some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{CaseResult, Judged};

    fn judged(id: &str, result: CaseResult) -> Judged {
        let (id, rules) = (id.to_owned(), &["R1"][..]);
        Judged { id, rules, result, steps: 2, faults_fired: 3, played: None }
    }

    fn report(backend: &'static str) -> Report {
        let cases = vec![
            judged("a::kept", CaseResult::Passed),
            judged("b::broken", CaseResult::Failed("job 7 is lost".to_owned())),
            judged("b::kept", CaseResult::Passed),
            judged("c::refused", CaseResult::Unsupported),
        ];
        Report { backend, cases }
    }

    fn marked(section: &str, table: &str) -> String {
        format!("before\n{}{table}{}after\n", begin(section), end(section))
    }

    #[test]
    fn each_topic_is_counted() {
        let expected = "| mine | cases | passed | failed | unsupported |\n\
                        |---|--:|--:|--:|--:|\n\
                        | a | 1 | 1 | 0 | 0 |\n\
                        | b | 2 | 1 | 1 | 0 |\n\
                        | c | 1 | 0 | 0 | 1 |\n\
                        | **all** | 4 | 2 | 1 | 1 |\n";
        assert_eq!(report("mine").markdown(), expected);
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let report = report("mine");
        let expected = marked("of mine", &report.markdown());
        for old in ["", "old\n", &report.markdown()] {
            let text = marked("of mine", old);
            assert_eq!(report.written_into(&text), Ok(expected.clone()));
        }
    }

    #[test]
    fn a_matrix_keeps_the_columns_of_the_others() {
        let old = "| topic | zset | mine | sqlite |\n\
                   |---|--:|--:|--:|\n\
                   | a | 9 | 8 of 9 | 7 |\n\
                   | gone | | 4 | |\n\
                   | c | 6 | 5 | 4 |\n\
                   | **all** | 3 | 2 | 1 |\n";
        let new = "| topic | zset | mine | sqlite |\n\
                   |---|--:|--:|--:|\n\
                   | a | 9 | 1 | 7 |\n\
                   | b |  | 1 of 2, 1 failed |  |\n\
                   | c | 6 | 0 of 1 | 4 |\n\
                   | **all** | 3 | 2 of 4, 1 failed | 1 |\n";
        let written = report("mine").written_into(&marked(MATRIX, old));
        assert_eq!(written, Ok(marked(MATRIX, new)));
    }

    #[test]
    fn a_summary_keeps_the_rows_of_the_others() {
        let heads = "| backend | cases | passed | failed | unsupported |\n\
                     |---|--:|--:|--:|--:|\n";
        let with = |mine: &str| format!("{heads}| x | 1 | 1 | 0 | 0 |\n{mine}");
        let mine = "| mine | 4 | 2 | 1 | 1 |\n";
        for old in [with(""), with("| mine | 9 | 9 | 0 | 0 |\n")] {
            let written = report("mine").written_into(&marked(SUMMARY, &old));
            assert_eq!(written, Ok(marked(SUMMARY, &with(mine))));
        }
    }

    #[test]
    fn reports_come_in_any_order() {
        let names = ["x", "y"].map(report);
        let text = marked(MATRIX, "") + &marked(SUMMARY, "");
        let both = names.iter().fold(text, |text, report| {
            let once = report.written_into(&text).unwrap();
            assert_eq!(report.written_into(&once).as_ref(), Ok(&once));
            once
        });
        let again = report("x").written_into(&both).unwrap();
        assert_eq!(again, both);
        assert!(both.contains("| topic | x | y |\n|---|--:|--:|\n| a | 1 | 1 |\n"));
    }

    #[test]
    fn a_text_without_marks_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [new, text] = ["new.md", "text.md"].map(|name| folder.path().join(name));
        std::fs::write(&text, "a letter\n").unwrap();

        let error = report("mine").write_markdown(&text).unwrap_err().to_string();
        report("mine").write_markdown(&new).unwrap();

        assert!(error.contains("<!-- conformance of mine: begin -->"), "{error}");
        assert_eq!(std::fs::read_to_string(text).unwrap(), "a letter\n");
        let written = std::fs::read_to_string(&new).unwrap();
        assert!(written.ends_with(
            "| **all** | 4 | 2 | 1 | 1 |\n<!-- conformance of mine: end -->\n"
        ));
        report("mine").write_markdown(&new).unwrap();
        assert_eq!(std::fs::read_to_string(new).unwrap(), written);
    }

    #[test]
    fn reports_that_are_written_at_once_are_all_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("matrix.md");
        std::fs::write(&file, marked(MATRIX, "")).unwrap();
        let names = ["a", "b", "c", "d", "e", "f", "g", "h"];

        std::thread::scope(|scope| {
            for name in names {
                let file = &file;
                scope.spawn(move || report(name).write_markdown(file).unwrap());
            }
        });

        let written = std::fs::read_to_string(file).unwrap();
        let heads = written.lines().find(|line| line.starts_with("| topic")).unwrap();
        for name in names {
            assert!(heads.contains(&format!(" {name} |")), "{written}");
        }
    }
}
