//! A report's table in a document.

use std::{fs, io, path::Path};

use conformance_tests::report::Report;

use crate::Outcome;

/// Writes the table to `file`, in place of what stands between the backend's marks.
pub(super) fn write(report: &Report, file: &Path) -> Outcome<()> {
    let before = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    Ok(fs::write(file, with_table(&before, report.backend, &report.markdown()))?)
}

/// `text` with the table between its marks, or the table alone if it has none.
fn with_table(text: &str, backend: &str, table: &str) -> String {
    let begin = format!("<!-- conformance of {backend}: begin -->\n");
    let end = format!("<!-- conformance of {backend}: end -->\n");
    let found = text.find(&begin).map(|at| at + begin.len());
    let found = found.and_then(|from| Some((from, text[from..].find(&end)? + from)));
    match found {
        Some((from, to)) => format!("{}{table}{}", &text[..from], &text[to..]),
        None => table.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = "a\n<!-- conformance of x: begin -->\nold\n\
                    <!-- conformance of x: end -->\nb\n";
        let expected = text.replace("old", "new");
        assert_eq!(with_table(text, "x", "new\n"), expected);
        assert_eq!(with_table(&expected, "x", "new\n"), expected);
        assert_eq!(with_table(text, "y", "new\n"), "new\n");
    }
}
