//! Hooks with which a test can stop or fail the database thread, before and after each
//! statement. Without a test the cost is one check of an empty option.

use std::{borrow::Cow, fmt, sync::Arc};

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

/// A test's replacement for statements. It is called with each statement that sets up a
/// connection or the schema or bounds a transaction, and returns the statement to execute instead, if any.
pub type Replace = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The hooks of a connection, if there are any.
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

    /// The text to execute for a statement that a test may replace.
    pub(crate) fn text<'a>(&self, sql: &'a str) -> Cow<'a, str> {
        let replaced = self.replace.as_ref().and_then(|replace| replace(sql));
        replaced.map_or(Cow::Borrowed(sql), Cow::Owned)
    }

    /// Executes one statement, with the hook around it.
    pub(crate) fn step<T>(
        &self,
        sql: &str,
        execute: impl FnOnce() -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let Some(watch) = &self.watch else { return execute() };
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
        f.write_str(if self.watch.is_some() { "Steps(watched)" } else { "Steps" })
    }
}
