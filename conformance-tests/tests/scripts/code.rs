//! The code that a page changes: the Lua scripts of a backend on Redis, or the statements of
//! SQLite.

use std::{collections::BTreeSet, time::Duration};

use relq_conformance::{Scope, Subject};

use crate::{
    change::{self, Change},
    on_redis, on_sqlite, sql,
};

#[derive(Clone, Copy)]
pub(crate) enum Code {
    /// The scripts of a backend.
    Lua {
        /// The name of the backend, which is in the name of its folder.
        backend: &'static str,
        /// Creates the backend with each of the settings that have scripts of their own.
        settings: &'static [fn() -> Box<dyn Subject>],
        changes: change::Scope,
    },
    /// The statements of SQLite.
    Sql,
}

/// The result of a case on changed code.
pub(crate) struct Judged {
    /// Whether the case ran the changed code.
    pub(crate) is_fitted: bool,
    pub(crate) result: Result<(), String>,
}

impl Code {
    pub(crate) fn changes(self) -> Vec<Change> {
        match self {
            Self::Lua { backend, changes, .. } => change::all(backend, changes),
            Self::Sql => sql::all(),
        }
    }

    /// Whether cases of that scope are for this backend.
    pub(crate) fn is_concerned(self, scope: Scope) -> bool {
        match self {
            Self::Lua { .. } => scope != Scope::Embedded,
            Self::Sql => scope != Scope::Redis,
        }
    }

    /// Runs the case without a change. Returns the names of the scripts or statements that
    /// it ran.
    ///
    /// # Panics
    /// If the case fails.
    pub(crate) fn run_unchanged(self, case: &str) -> BTreeSet<String> {
        match self {
            Self::Lua { settings, .. } => on_redis::run_unchanged(settings, case),
            Self::Sql => on_sqlite::run_unchanged(case),
        }
    }

    /// Runs the case with a change. After `limit` it counts as hanging.
    pub(crate) fn judge(self, case: &str, change: &Change, limit: Duration) -> Judged {
        match self {
            Self::Lua { settings, .. } => {
                on_redis::judge(settings, case, change, limit)
            }
            Self::Sql => on_sqlite::judge(case, change, limit),
        }
    }
}
