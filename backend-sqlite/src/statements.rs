//! The statements in `sql/`, each behind a typed function. Nothing else in this
//! crate knows their text or the order of their columns.

mod batches;
mod ending;
mod followers;
mod inspecting;
mod operating;
mod pushing;
mod restoring;
mod results;
mod rows;
mod schedules;
#[cfg(test)]
mod tests;
mod workers;
mod working;

use relq_core::QueueName;
use rusqlite::{
    CachedStatement, Connection, OptionalExtension as _, Params, Row, params,
};

use crate::failure::Failure;
use crate::steps::Steps;
use crate::store::Store;

pub(crate) use batches::{CompletionRow, EndedBatch};
pub(crate) use ending::{Again, EXPIRED, Ended};
pub(crate) use inspecting::{JobRead, ScheduledRow};
pub(crate) use operating::{Buried, DeadKey, Found, Listing, PeekKey, Peeked};
pub(crate) use pushing::{Holder, JobRow};
pub(crate) use results::{End, ResultRow};
pub(crate) use schedules::Entry;
pub(crate) use workers::WorkerRow;
pub(crate) use working::{Held, NewLease, ReadyRow};

/// Includes the text of a statement from its file in `sql/`.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// Returns the key of the queue with this name. Adds the queue to the file if it is not
/// there yet.
pub(crate) fn queue_key(
    conn: &Connection,
    steps: &Steps,
    name: &QueueName,
) -> Result<i64, Failure> {
    let find = sql!("queue_find");
    let add = sql!("queue_add");
    let find = || {
        let read = |row: &Row<'_>| {
            steps.returned(row);
            row.get(0)
        };
        let query = || conn.query_row(&steps.text(find), [name.as_str()], read);
        steps.step(find, || query().optional())
    };
    if let Some(key) = find()? {
        return Ok(key);
    }
    steps.step(add, || conn.execute(&steps.text(add), [name.as_str()]))?;
    find()?
        .ok_or_else(|| Failure::unusable("the queue was removed while it was opened"))
}

/// Reads the names of up to `most` queues of the file behind the name `after`.
pub(crate) fn queue_names(
    conn: &Connection,
    steps: &Steps,
    after: &str,
    most: u32,
) -> rusqlite::Result<Vec<String>> {
    let sql = sql!("queue_list");
    steps.step(sql, || {
        let mut list = conn.prepare(&steps.text(sql))?;
        list.query_map(params![after, most], |row| row.get(0))?.collect()
    })
}

/// Takes the write lock of the file for the open transaction.
#[cfg(feature = "push-in")]
pub(crate) fn take_lock(conn: &Connection, steps: &Steps) -> Result<(), Failure> {
    let sql = sql!("lock_take");
    steps.step(sql, || conn.prepare_cached(sql)?.execute([]))?;
    Ok(())
}

/// Returns the name of a temporary table that hides a table of a push. `None` if no
/// table is hidden.
#[cfg(feature = "push-in")]
pub(crate) fn temporary_namesake(conn: &Connection) -> Result<Option<String>, Failure> {
    let mut find = conn.prepare_cached(sql!("temporary_namesake"))?;
    Ok(find.query_row([], |row| row.get(0)).optional()?)
}

impl Store<'_> {
    /// Prepares a statement, or the one by which a test has replaced it.
    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.conn.prepare_cached(&self.steps.text(sql))
    }

    /// Executes a statement. Returns how many rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, Failure> {
        let execute = || {
            let rows = self.prepare(sql)?.execute(params)?;
            self.steps.changed(rows, self.conn);
            Ok(rows)
        };
        Ok(self.steps.step(sql, execute)?)
    }

    /// Executes a query that returns one row at most. `None` if it returns no row.
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        let read = |row: &Row<'_>| {
            self.steps.returned(row);
            read(row)
        };
        let query = || self.prepare(sql)?.query_row(params, read).optional();
        Ok(self.steps.step(sql, query)?)
    }

    /// Executes a query that always returns one row.
    fn read<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        self.find(sql, params, read)?.ok_or_else(|| {
            Failure::unusable("the queue was removed from the file; open it again")
        })
    }

    /// Executes a query, and reads all of its rows.
    fn list<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        let read = |row: &Row<'_>| {
            self.steps.returned(row);
            read(row)
        };
        let query = || {
            let mut statement = self.prepare(sql)?;
            statement.query_map(params, read)?.collect::<Result<_, _>>()
        };
        Ok(self.steps.step(sql, query)?)
    }

    /// Executes a query, and reads its rows up to the first that the caller does not
    /// want.
    fn list_while<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Vec<T>, Failure> {
        let read = |row: &Row<'_>| {
            self.steps.returned(row);
            read(row)
        };
        let query = || {
            let mut statement = self.prepare(sql)?;
            let rows = statement.query_map(params, read)?;
            rows.take_while(|row| row.as_ref().map_or(true, &mut is_wanted)).collect()
        };
        Ok(self.steps.step(sql, query)?)
    }
}
