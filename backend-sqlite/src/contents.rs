//! Computes a digest of all rows of a database file, or their number, with which tests
//! compare two states of the file.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    path::Path,
};

use rusqlite::{Connection, OpenFlags, Row, types::ValueRef};

/// A connection that reads all rows of a file.
#[derive(Debug)]
pub struct Contents {
    conn: Connection,
    /// For each table, the statement that reads all of its rows.
    statements: Vec<String>,
}

impl Contents {
    /// Opens a file that exists and has its tables.
    ///
    /// # Errors
    /// When SQLite cannot open or read it.
    pub fn open(file: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(file, flags)?;
        let statements = conn
            .prepare(
                "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
            )?
            .query_map([], |row| row.get(0))?
            // `NOT INDEXED` makes SQLite read the table itself: its order of rows is
            // fixed, and an index may lack columns.
            .map(|name: rusqlite::Result<String>| {
                Ok(format!("SELECT * FROM \"{}\" NOT INDEXED", name?))
            })
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { conn, statements })
    }

    /// A digest of all committed rows, in the order of their tables.
    ///
    /// # Errors
    /// When SQLite cannot read the file.
    pub fn digest(&self) -> rusqlite::Result<u64> {
        let mut hasher = DefaultHasher::new();
        for sql in &self.statements {
            sql.hash(&mut hasher);
            let mut statement = self.conn.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                add_row(row, &mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    /// The number of committed rows of all tables.
    ///
    /// # Errors
    /// When SQLite cannot read the file.
    pub fn rows(&self) -> rusqlite::Result<u64> {
        let count = |sql: &String| {
            let count = format!("SELECT count(*) FROM ({sql})");
            self.conn.query_row(&count, [], |row| row.get::<_, u64>(0))
        };
        self.statements.iter().map(count).sum()
    }
}

/// Adds all values of a row to a digest.
pub(crate) fn add_row(row: &Row<'_>, hasher: &mut DefaultHasher) {
    let columns = row.as_ref().column_count();
    (0..columns).filter_map(|at| row.get_ref(at).ok()).for_each(|it| add(it, hasher));
}

fn add(value: ValueRef<'_>, hasher: &mut DefaultHasher) {
    match value {
        ValueRef::Null => 0_u8.hash(hasher),
        ValueRef::Integer(number) => (1_u8, number).hash(hasher),
        ValueRef::Real(number) => (2_u8, number.to_bits()).hash(hasher),
        ValueRef::Text(bytes) => (3_u8, bytes).hash(hasher),
        ValueRef::Blob(bytes) => (4_u8, bytes).hash(hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_committed_change_shows_and_no_other_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queue.db");
        let conn = Connection::open(&file).unwrap();
        conn.execute_batch(
            "PRAGMA journal_mode = WAL; CREATE TABLE a (x); CREATE TABLE b (y);
             INSERT INTO a VALUES (1)",
        )
        .unwrap();
        let contents = Contents::open(&file).unwrap();
        let mut seen = vec![contents.digest().unwrap()];
        for sql in [
            "INSERT INTO b VALUES (1)",
            "UPDATE a SET x = '1'",
            "UPDATE a SET x = x'31'",
            "UPDATE a SET x = NULL",
            "DELETE FROM a",
        ] {
            conn.execute_batch(&format!("BEGIN; {sql}")).unwrap();
            assert_eq!(contents.digest().unwrap(), *seen.last().unwrap(), "{sql}");
            conn.execute_batch("COMMIT").unwrap();
            seen.push(contents.digest().unwrap());
        }
        assert_eq!(contents.rows().unwrap(), 1, "`b` has one row");

        let known: std::collections::BTreeSet<_> = seen.iter().collect();
        assert_eq!(known.len(), seen.len());
    }
}
