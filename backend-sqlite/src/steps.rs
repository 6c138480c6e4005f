//! Where a test can stop or fail the database thread: before and after each
//! statement. Without a test it is one look at an empty option.

use std::{fmt, sync::Arc};

use rusqlite::ffi;

/// What a test has done at each step. It is called with the statement, before it
/// begins and, if it did not fail, after it ended. An error before it is a result
/// code of SQLite's, with which the statement fails instead of being executed.
pub type AtStep = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// On which side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Nothing of it happened yet.
    Before,
    /// All of it happened.
    After,
}

/// The steps of a connection, watched or not.
#[derive(Clone, Default)]
pub(crate) struct Steps(Option<AtStep>);

impl Steps {
    pub(crate) fn watched_by(watch: AtStep) -> Self {
        Self(Some(watch))
    }

    /// Executes one statement.
    pub(crate) fn step<T>(
        &self,
        sql: &str,
        execute: impl FnOnce() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(watch) = &self.0 else { return execute() };
        watch(Side::Before, sql).map_err(failure)?;
        let done = execute()?;
        watch(Side::After, sql).map_err(failure)?;
        Ok(done)
    }
}

fn failure(code: i32) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
}

impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Steps(watched)" } else { "Steps" })
    }
}
