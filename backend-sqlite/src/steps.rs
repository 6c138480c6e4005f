//! Hooks with which a test can stop or fail the database thread, before and after each
//! statement. Outside of tests, the cost is one check of an empty option.

use std::{
    borrow::Cow,
    cell::RefCell,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use rusqlite::{Connection, Row, ffi};

use crate::contents::add_row;

/// A hook of a test. It is called with each statement before the statement is executed
/// and, if the statement succeeds, once more afterwards. If the first call returns an
/// error, the statement is not executed and fails with that SQLite result code.
pub type AtStep = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// Whether a hook is called before or after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The hook is called before the statement is executed.
    Before,
    /// The hook is called after the statement was executed.
    After,
}

/// A hook of a test that replaces statements. It is called with the text of each statement,
/// as it is in its file in `sql/`. It returns the statement to execute instead, or `None` to
/// execute the original.
pub type Replace = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

thread_local! {
    static RESULT: RefCell<DefaultHasher> = RefCell::default();
}

/// A digest of what the last statement of this thread returned: the values of each row,
/// or the number of rows that it changed and the key of the last row that it added. A
/// hook calls this after the statement.
///
/// The value of `PRAGMA data_version` is left out. The number has no meaning by itself:
/// only a change of it shows that another connection wrote the file.
pub fn result() -> u64 {
    RESULT.with_borrow(DefaultHasher::finish)
}

/// The hooks that a test has set on a connection. Both are `None` outside of tests.
#[derive(Clone, Default)]
pub(crate) struct Steps {
    watch: Option<AtStep>,
    replace: Option<Replace>,
}

impl Steps {
    pub(crate) fn watched_by(watch: AtStep) -> Self {
        Self { watch: Some(watch), ..Self::default() }
    }

    pub(crate) fn replaced_by(self, replace: Replace) -> Self {
        Self { replace: Some(replace), ..self }
    }

    /// Returns the text to execute: the replacement that a test has set for the
    /// statement, or the statement itself.
    pub(crate) fn text<'a>(&self, sql: &'a str) -> Cow<'a, str> {
        self.replacement(sql).map_or(Cow::Borrowed(sql), Cow::Owned)
    }

    /// Returns the replacement that a test has set for the statement.
    pub(crate) fn replacement(&self, sql: &str) -> Option<String> {
        self.replace.as_ref().and_then(|replace| replace(sql))
    }

    /// Executes one statement, and calls the hook before and after it.
    pub(crate) fn step<T>(
        &self,
        sql: &str,
        execute: impl FnOnce() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(watch) = &self.watch else { return execute() };
        watch(Side::Before, sql).map_err(failure)?;
        RESULT.set(DefaultHasher::new());
        let done = execute()?;
        watch(Side::After, sql).map_err(failure)?;
        Ok(done)
    }

    /// Adds a returned row to the digest of the statement that runs.
    pub(crate) fn returned(&self, row: &Row<'_>) {
        if self.watch.is_some() {
            RESULT.with_borrow_mut(|result| add_row(row, result));
        }
    }

    /// Adds to the digest of the statement that runs how many rows it changed, and the
    /// key of the last row that was added.
    pub(crate) fn changed(&self, rows: usize, conn: &Connection) {
        if self.watch.is_some() {
            let last = conn.last_insert_rowid();
            RESULT.with_borrow_mut(|result| (rows, last).hash(result));
        }
    }
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.watch.is_some() { "Steps(watched)" } else { "Steps" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of a statement that returns the number.
    fn digest_of(number: i64) -> u64 {
        let steps = Steps::watched_by(Arc::new(|_, _| Ok(())));
        let conn = Connection::open_in_memory().unwrap();
        let sql = "SELECT ?1";
        let read = |row: &Row<'_>| {
            steps.returned(row);
            row.get::<_, i64>(0)
        };
        steps.step(sql, || conn.query_row(sql, [number], read)).unwrap();
        result()
    }

    /// A search takes two states of a process with one digest for the same state.
    #[test]
    fn a_digest_shows_the_rows_that_a_statement_returned() {
        assert_eq!(digest_of(1), digest_of(1));
        assert_ne!(digest_of(1), digest_of(2));
    }
}
