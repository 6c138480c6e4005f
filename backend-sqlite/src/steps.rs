//! Hooks with which a test can stop or fail the database thread, before and after each
//! statement. Without a test the cost is one check of an empty option.

use std::{fmt, sync::Arc};

use rusqlite::ffi;

/// A test's hook. It is called with the statement before it begins and, if it succeeds,
/// after it ended. If the hook returns an error before the statement, the statement
/// fails with that SQLite result code and is not executed.
pub type AtStep = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// Whether a hook is called before or after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// The statement has not been executed.
    Before,
    /// The statement has been executed.
    After,
}

/// The hook of a connection, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Steps(Option<AtStep>);

impl Steps {
    pub(crate) fn watched_by(watch: AtStep) -> Self {
        Self(Some(watch))
    }

    /// Executes one statement, with the hook around it.
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
