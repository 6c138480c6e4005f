//! The statements in `sql/`, each behind a typed function. Nothing else in this
//! crate knows their text or the order of their columns.

mod batches;
mod ending;
mod operating;
mod pushing;
#[cfg(test)]
mod tests;
mod working;

use relq_core::QueueName;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use crate::failure::Failure;
use crate::steps::Steps;
use crate::store::Store;

pub(crate) use batches::{CompletionRow, EndedBatch};
pub(crate) use ending::{EXPIRED, Ended};
pub(crate) use operating::{Buried, DeadKey, Found, PeekKey, Peeked};
pub(crate) use pushing::{Holder, JobRow};
pub(crate) use working::{Held, ReadyRow};

/// The text of a statement, read from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// The key of the queue with that name. The queue is added if the file does not have
/// it.
pub(crate) fn queue_key(
    conn: &Connection,
    steps: &Steps,
    name: &QueueName,
) -> Result<i64, Failure> {
    let (find, add) = (sql!("queue_find"), sql!("queue_add"));
    let find = || {
        let query = || conn.query_row(find, [name.as_str()], |row| row.get(0));
        steps.step(find, || query().optional())
    };
    if let Some(key) = find()? {
        return Ok(key);
    }
    steps.step(add, || conn.execute(add, [name.as_str()]))?;
    find()?
        .ok_or_else(|| Failure::unusable("the queue was removed while it was opened"))
}

impl Store<'_> {
    /// Executes a statement. Returns how many rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, Failure> {
        let execute = || self.conn.prepare_cached(sql)?.execute(params);
        Ok(self.steps.step(sql, execute)?)
    }

    /// Reads one row, or none.
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        let query =
            || self.conn.prepare_cached(sql)?.query_row(params, read).optional();
        Ok(self.steps.step(sql, query)?)
    }

    /// Reads a row that must exist.
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

    /// Reads all rows.
    fn list<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Failure> {
        let query = || {
            let mut statement = self.conn.prepare_cached(sql)?;
            statement.query_map(params, read)?.collect::<Result<_, _>>()
        };
        Ok(self.steps.step(sql, query)?)
    }

    /// As `list`, up to the first row that is not wanted.
    fn list_while<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
        mut is_wanted: impl FnMut(&T) -> bool,
    ) -> Result<Vec<T>, Failure> {
        let query = || {
            let mut statement = self.conn.prepare_cached(sql)?;
            let rows = statement.query_map(params, read)?;
            rows.take_while(|row| row.as_ref().map_or(true, &mut is_wanted)).collect()
        };
        Ok(self.steps.step(sql, query)?)
    }
}
