//! Statements that handle several rows at once.
//!
//! To begin and end an execution of a statement takes SQLite a third of the work of a
//! push of one row: among other things, it opens a cursor for each index of the table. So
//! some files in `sql/` have a part between two marks, `/*each*/`, which is repeated for
//! each of the rows that one execution handles. The parameters of the part belong to one
//! row, except the first ones, which all rows share.

use rusqlite::{Row, Statement, ToSql};

use crate::failure::Failure;
use crate::store::Store;

/// The mark before and behind the part for each row. It is a comment, so that the file
/// is a statement for one row.
pub(super) const MARK: &str = "/*each*/";

/// The numbers of rows that one execution can handle. Each has a prepared statement of its
/// own. A list of rows is handled by the largest one that it fills, again and again.
const SIZES: [usize; 4] = [64, 16, 4, 1];

/// The texts of a statement, one for each number of rows in [`SIZES`].
pub(super) struct ForRows {
    /// The text for one row.
    sql: String,
    texts: [String; SIZES.len()],
    /// How many parameters belong to one row.
    width: usize,
    /// How many parameters all rows share. These have the lowest numbers.
    shared: usize,
}

/// Includes a statement for several rows from its file in `sql/`. The rows share its first
/// parameters, as many as the second argument says.
macro_rules! sql_for_rows {
    ($name:literal, $shared:literal) => {{
        use $crate::statements::{rows::ForRows, sql};
        static STATEMENT: std::sync::LazyLock<ForRows> =
            std::sync::LazyLock::new(|| ForRows::new(sql!($name), $shared));
        &*STATEMENT
    }};
}
pub(super) use sql_for_rows;

impl ForRows {
    /// # Panics
    /// If the text does not have two marks.
    pub(super) fn new(sql: &str, shared: usize) -> Self {
        let parts: Vec<_> = sql.split(MARK).collect();
        let [head, each, tail] = parts[..] else {
            panic!("a statement for several rows has two marks: {sql}");
        };
        let width = numbers(each).max().unwrap_or(shared) - shared;
        let texts = SIZES.map(|rows| {
            let one = |row| shifted(each, shared, row * width);
            let rows: Vec<_> = (0..rows).map(one).collect();
            format!("{head}{}{tail}", rows.join(", "))
        });
        Self { sql: sql.to_owned(), texts, width, shared }
    }

    /// Returns the text with which to begin on so many rows, and how many it handles.
    pub(super) fn for_first_of(&self, rows: usize) -> (&str, usize) {
        let fitting = SIZES.iter().position(|size| *size <= rows);
        let at = fitting.unwrap_or(SIZES.len() - 1);
        (&self.texts[at], SIZES[at])
    }
}

/// Splits what follows a `?` into the number of the parameter and the text behind it.
fn split_number(text: &str) -> (usize, &str) {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(digits);
    (number.parse().expect("a parameter has a number"), rest)
}

/// The numbers of the parameters in a text, such as 3 for `?3`.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    text.split('?').skip(1).map(|part| split_number(part).0)
}

/// Returns the part for another row: the numbers of its parameters are higher, except those
/// of the shared ones.
fn shifted(text: &str, shared: usize, by: usize) -> String {
    let mut parts = text.split('?');
    let mut shifted = parts.next().unwrap_or_default().to_owned();
    for (number, rest) in parts.map(split_number) {
        let number = if number > shared { number + by } else { number };
        shifted += &format!("?{number}{rest}");
    }
    shifted
}

/// Sets the parameters of a statement, one after the other.
pub(super) struct Parameters<'a, 'conn> {
    statement: &'a mut Statement<'conn>,
    next: usize,
}

impl Parameters<'_, '_> {
    pub(super) fn add(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.statement.raw_bind_parameter(self.next, value)?;
        self.next += 1;
        Ok(())
    }
}

impl Store<'_> {
    /// Executes a statement for all of the rows, in their order. `set` sets the parameters
    /// of one row.
    pub(super) fn change_rows<R>(
        &self,
        sql: &ForRows,
        shared: &[&dyn ToSql],
        rows: &[R],
        set: impl Fn(&R, &mut Parameters<'_, '_>) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        self.for_all(sql, shared, rows, set, |statement| {
            let changed = statement.raw_execute()?;
            self.steps.changed(changed, self.conn);
            Ok(())
        })
    }

    /// Executes a query for all of the rows. `set` sets the parameters of one row, and
    /// `read` reads a row of the result.
    pub(super) fn list_rows<R, T>(
        &self,
        sql: &ForRows,
        shared: &[&dyn ToSql],
        rows: &[R],
        set: impl Fn(&R, &mut Parameters<'_, '_>) -> rusqlite::Result<()>,
        read: impl Fn(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        let mut listed = Vec::new();
        self.for_all(sql, shared, rows, set, |statement| {
            let mut found = statement.raw_query();
            while let Some(row) = found.next()? {
                self.steps.returned(row);
                listed.push(read(row)?);
            }
            Ok(())
        })?;
        Ok(listed)
    }

    /// Prepares a statement for as many rows as it can handle, sets its parameters, and
    /// calls `run`, until all rows are handled.
    fn for_all<R>(
        &self,
        sql: &ForRows,
        shared: &[&dyn ToSql],
        mut rows: &[R],
        set: impl Fn(&R, &mut Parameters<'_, '_>) -> rusqlite::Result<()>,
        mut run: impl FnMut(&mut Statement<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        let replaced = self.steps.replacement(&sql.sql);
        let replaced = replaced.map(|text| ForRows::new(&text, sql.shared));
        let sql = replaced.as_ref().unwrap_or(sql);
        while !rows.is_empty() {
            let (text, count) = sql.for_first_of(rows.len());
            let (first, rest) = rows.split_at(count);
            self.steps.step(text, || {
                let mut statement = self.conn.prepare_cached(text)?;
                sql.set_all(&mut statement, shared, first, &set)?;
                run(&mut statement)
            })?;
            rows = rest;
        }
        Ok(())
    }
}

impl ForRows {
    fn set_all<R>(
        &self,
        statement: &mut Statement<'_>,
        shared: &[&dyn ToSql],
        rows: &[R],
        set: impl Fn(&R, &mut Parameters<'_, '_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<()> {
        debug_assert_eq!(shared.len(), self.shared, "the shared parameters come first");
        let mut parameters = Parameters { statement, next: 1 };
        for value in shared {
            parameters.add(value)?;
        }
        for row in rows {
            let first = parameters.next;
            set(row, &mut parameters)?;
            debug_assert_eq!(parameters.next, first + self.width, "all are set");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_for_each_row_is_repeated_with_parameters_of_its_own() {
        let list = ForRows::new("SELECT ?1 WHERE a IN (/*each*/?2/*each*/)", 1);
        assert_eq!(list.for_first_of(1), ("SELECT ?1 WHERE a IN (?2)", 1));
        assert_eq!(list.for_first_of(15), ("SELECT ?1 WHERE a IN (?2, ?3, ?4, ?5)", 4));
        assert_eq!(list.for_first_of(1000).1, 64);

        let pairs = ForRows::new("VALUES /*each*/(?1, iif(?3, ?3, ?2))/*each*/", 1);
        let four = "VALUES (?1, iif(?3, ?3, ?2)), (?1, iif(?5, ?5, ?4)), \
                    (?1, iif(?7, ?7, ?6)), (?1, iif(?9, ?9, ?8))";
        assert_eq!(pairs.for_first_of(4), (four, 4));
    }
}
