//! The statements in `sql/`, each behind a typed function. Nothing else in this
//! crate knows their text or the order of their columns.

mod ending;
mod operating;
mod pushing;
#[cfg(test)]
mod tests;
mod working;

use queue_core::QueueName;
use rusqlite::{Connection, OptionalExtension as _, Params, Row};

use crate::failure::Failure;
use crate::store::Store;

pub(crate) use ending::Ended;
pub(crate) use operating::{Buried, DeadKey, Found, PeekKey, Peeked};
pub(crate) use pushing::{Holder, JobRow};
pub(crate) use working::{Held, ReadyRow};

/// The text of a statement, from its file.
macro_rules! sql {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/", $name, ".sql"))
    };
}
pub(crate) use sql;

/// The key of the queue of that name, which is added if the file does not have it.
pub(crate) fn queue_key(conn: &Connection, name: &QueueName) -> Result<i64, Failure> {
    let find = || {
        conn.query_row(sql!("queue_find"), [name.as_str()], |row| row.get(0)).optional()
    };
    if let Some(key) = find()? {
        return Ok(key);
    }
    conn.execute(sql!("queue_add"), [name.as_str()])?;
    find()?
        .ok_or_else(|| Failure::unusable("the queue was removed while it was opened"))
}

impl Store<'_> {
    /// Executes a statement and answers how many rows it changed.
    fn change(&self, sql: &str, params: impl Params) -> Result<usize, Failure> {
        Ok(self.conn.prepare_cached(sql)?.execute(params)?)
    }

    /// Reads one row, or none.
    fn find<T>(
        &self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        Ok(self.conn.prepare_cached(sql)?.query_row(params, read).optional()?)
    }

    /// Reads the row that has to be there.
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
        let mut statement = self.conn.prepare_cached(sql)?;
        let rows = statement.query_map(params, read)?.collect::<Result<_, _>>()?;
        Ok(rows)
    }
}
