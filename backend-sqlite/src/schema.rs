//! The owner of a file, the version of its schema, and the migration to the newest
//! version.
//!
//! The file's header names its owner (`application_id`) and its version
//! (`user_version`). Both are set in the transaction that creates the tables. That
//! transaction uses a rollback journal, so the header in the file itself is up to date.
//! Before the file is opened for work, the header is read in a way that creates no log
//! and takes no lock: a file that does not belong to relq is never changed.

use std::{
    fs,
    io::{self, ErrorKind, Read as _},
    ops::Range,
    path::Path,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::failure::Failure;
use crate::steps::Steps;
use crate::store_files::beside;

/// The `application_id` of relq's files: `relq` in ASCII.
const APPLICATION_ID: u32 = u32::from_be_bytes(*b"relq");

/// The length of the header of every SQLite database. SQLite treats a shorter file as
/// an empty one.
const HEADER_BYTES: u64 = 100;

/// The first bytes of a rollback journal
/// (<https://sqlite.org/fileformat.html#the_rollback_journal>).
const JOURNAL_MAGIC: &[u8] = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7";
const JOURNAL_HEADER_BYTES: usize = 28;
/// Where a journal's header stores how many pages the database had before the
/// transaction.
const PAGES_BEFORE: Range<usize> = 16..20;

/// The migrations. The entry at index N migrates the schema from version N to N + 1.
/// The entry of a released version is never changed. A new version adds an entry.
pub(crate) const VERSIONS: &[&str] = &[
    include_str!("../sql/schema_1.sql"),
    include_str!("../sql/schema_2.sql"),
    include_str!("../sql/schema_3.sql"),
    include_str!("../sql/schema_4.sql"),
    include_str!("../sql/schema_5.sql"),
    include_str!("../sql/schema_6.sql"),
    include_str!("../sql/schema_7.sql"),
    include_str!("../sql/schema_8.sql"),
    include_str!("../sql/schema_9.sql"),
    include_str!("../sql/schema_10.sql"),
];

/// Refuses a file that does not belong to relq, without writing to it. A missing or
/// empty file is accepted.
///
/// SQLite reads the header. This crate must not open the file by itself: when a process
/// closes a file, it loses all the locks that SQLite holds on that file for other
/// handles.
pub(crate) fn check_owner(path: &Path) -> Result<(), Failure> {
    if is_half_created(path).map_err(|error| unreadable(path, &error))? {
        return Ok(());
    }
    match fs::metadata(path) {
        Ok(found) if found.len() == 0 => return Ok(()),
        Ok(found) if found.len() < HEADER_BYTES => {
            return Err(foreign(path, "is not a SQLite database"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(path, &error)),
    }
    match read_owner(path) {
        Ok(APPLICATION_ID) => Ok(()),
        Ok(_) => Err(foreign(path, "is the database of another program")),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(foreign(path, "is not a SQLite database"))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether the file was only half created. Its rollback journal then makes it empty
/// again. The process that creates the file was killed, lost power or is still at work.
/// The header cannot be trusted then, and SQLite undoes the creation only for a
/// connection that may write.
///
/// SQLite holds no lock on a journal, so this crate may open it.
pub(crate) fn is_half_created(path: &Path) -> io::Result<bool> {
    let journal = beside(path, "-journal");
    let mut header = [0; JOURNAL_HEADER_BYTES];
    match fs::File::open(journal).and_then(|mut it| it.read_exact(&mut header)) {
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::UnexpectedEof => Ok(false),
            _ => Err(error),
        },
        Ok(()) => {
            Ok(header.starts_with(JOURNAL_MAGIC) && header[PAGES_BEFORE] == [0; 4])
        }
    }
}

/// Reads the owner from the file itself, without its log and without a lock. If another
/// process is copying its log into the file, the file can look damaged. Then the owner
/// is read again, with a lock.
fn read_owner(path: &Path) -> rusqlite::Result<u32> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let with_uri = flags | OpenFlags::SQLITE_OPEN_URI;
    match application_id(Connection::open_with_flags(immutable_uri(path), with_uri)) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            application_id(Connection::open_with_flags(path, flags))
        }
        other => other,
    }
}

fn application_id(conn: rusqlite::Result<Connection>) -> rusqlite::Result<u32> {
    conn?.pragma_query_value(None, "application_id", |row| row.get(0))
}

/// Converts a path to a URI with the option `immutable`. It tells SQLite that no
/// process changes the file, so SQLite creates no log and takes no lock.
fn immutable_uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// Creates the tables, or migrates them to the newest version, in one transaction.
pub(crate) fn prepare(conn: &mut Connection, steps: &Steps) -> Result<(), Failure> {
    migrate(conn, VERSIONS, steps)
}

fn migrate(
    conn: &mut Connection,
    versions: &[&str],
    steps: &Steps,
) -> Result<(), Failure> {
    if version(conn, versions)? == versions.len() {
        return Ok(());
    }
    let transaction = steps.step("BEGIN IMMEDIATE", || {
        conn.transaction_with_behavior(TransactionBehavior::Immediate)
    })?;
    // The version is read in the transaction, because another process may have migrated
    // the file meanwhile.
    for batch in &versions[version(&transaction, versions)?..] {
        let sql = steps.text(batch);
        steps.step(batch, || transaction.execute_batch(&sql))?;
    }
    let name = |name, value| transaction.pragma_update(None, name, value);
    steps.step("PRAGMA application_id", || name("application_id", APPLICATION_ID))?;
    let newest = u32::try_from(versions.len()).expect("versions are few");
    steps.step("PRAGMA user_version", || name("user_version", newest))?;
    steps.step("COMMIT", || transaction.commit()).map_err(Failure::of_commit)
}

/// Fails if a newer relq has migrated the file after this program opened it. The
/// statements of this program were written for the older tables.
///
/// Each transaction must call this. It costs little: the version is in the first page
/// of the file, which the transaction has read already.
pub(crate) fn check_version(conn: &Connection) -> Result<(), Failure> {
    let found: i64 =
        conn.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    let known = VERSIONS.len();
    if usize::try_from(found) == Ok(known) {
        return Ok(());
    }
    Err(Failure::unusable(format!(
        "another relq changed the file to schema version {found} while it was open, and \
         this program knows version {known}; restart it with the relq that changed the \
         file",
    )))
}

/// Reads the schema version of the file; zero for a new file.
fn version(conn: &Connection, versions: &[&str]) -> Result<usize, Failure> {
    let version: i64 =
        conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let newest = versions.len();
    match usize::try_from(version) {
        Ok(0) => refuse_foreign_tables(conn).map(|()| 0),
        Ok(version) if version <= newest => Ok(version),
        _ => Err(Failure::unusable(format!(
            "the file has schema version {version}, and this program knows only up to \
             {newest}; use the newer relq that wrote it",
        ))),
    }
}

fn refuse_foreign_tables(conn: &Connection) -> Result<(), Failure> {
    let tables: i64 =
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(());
    }
    Err(Failure::unusable("the file has tables that are not relq's; name another file"))
}

fn foreign(path: &Path, what: &str) -> Failure {
    let path = path.display();
    Failure::unusable(format!("{path} {what}; it was not changed, name another file"))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let words = format!("{} cannot be read: {error}", path.display());
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::denied(words),
        _ => Failure::unusable(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Connection {
        Connection::open_in_memory().unwrap()
    }

    #[test]
    fn an_older_schema_is_brought_to_the_newest() {
        let mut conn = memory();
        migrate(&mut conn, &["CREATE TABLE a (x);"], &Steps::default()).unwrap();
        conn.execute("INSERT INTO a VALUES (7)", []).unwrap();

        let steps = ["CREATE TABLE a (x);", "ALTER TABLE a ADD COLUMN y DEFAULT 8;"];
        migrate(&mut conn, &steps, &Steps::default()).unwrap();

        let row = conn.query_row("SELECT x + y FROM a", [], |row| row.get::<_, i64>(0));
        assert_eq!(row.unwrap(), 15);
        assert_eq!(version(&conn, &steps).unwrap(), 2);
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_schema_whole() {
        let mut conn = memory();
        migrate(&mut conn, &["CREATE TABLE a (x);"], &Steps::default()).unwrap();

        let steps = ["CREATE TABLE a (x);", "CREATE TABLE b (x); CREATE TABLE a (x);"];
        migrate(&mut conn, &steps, &Steps::default()).unwrap_err();

        assert_eq!(version(&conn, &steps).unwrap(), 1);
        let tables = "SELECT count(*) FROM sqlite_schema";
        assert_eq!(conn.query_row(tables, [], |row| row.get(0)), Ok(1));
    }

    #[test]
    fn a_newer_schema_is_refused() {
        let mut conn = memory();
        conn.pragma_update(None, "user_version", VERSIONS.len() + 1).unwrap();

        let error = prepare(&mut conn, &Steps::default()).unwrap_err();

        let message = error.at(relq_core::error::Operation::Connect).full_message();
        assert!(message.contains("use the newer relq"), "{message}");
    }

    #[test]
    fn tables_of_another_program_are_refused() {
        let mut conn = memory();
        conn.execute_batch("CREATE TABLE theirs (x)").unwrap();

        prepare(&mut conn, &Steps::default()).unwrap_err();

        let id = conn.pragma_query_value(None, "application_id", |row| row.get(0));
        assert_eq!(id, Ok(0));
    }
}
