//! Opens a connection to the file: checks the file first, and then sets the same
//! options on every connection.

use std::{
    cell::Cell,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, config::DbConfig};

use crate::config::{Durability, Location, MissingFile, Sorts, SqliteConfig};
use crate::failure::Failure;
use crate::schema;
use crate::store_files::refuse_hard_links;

/// The lowest supported SQLite version, 3.37, in the form of
/// `sqlite3_libversion_number`. It is the first with STRICT tables. A library that the
/// system provides can be older.
const LOWEST_SQLITE: i32 = 3_037_000;
/// The number of prepared statements that a connection caches. It exceeds the number of
/// statements of this crate.
const STATEMENTS: usize = 160;
/// The size of the page cache of a connection. SQLite reads a negative number as KiB
/// and a positive one as pages, so this is 8 MiB.
const CACHE_KIB: i32 = -8 * 1024;
/// The size in bytes above which the write-ahead log is truncated after a checkpoint.
const LOG_BYTES: i64 = 64 * 1024 * 1024;
/// The first pause before a connection tries again to get a lock, and the amount by
/// which each later pause grows. The pauses are short because a process that writes
/// without a break leaves the file unlocked for only about 100 µs between transactions.
const NAP: Duration = Duration::from_micros(100);
const NAP_GROWTH: Duration = Duration::from_micros(5);
/// The longest pause before a connection tries again to get a lock.
const LONGEST_NAP: Duration = Duration::from_millis(5);

/// Returns the canonical path of the database file. `None` for a database in memory.
pub(crate) fn resolve(location: &Location) -> Result<Option<PathBuf>, Failure> {
    let Location::File(path) = location else { return Ok(None) };
    if path.is_dir() {
        let words = format!("{} is a folder; name a file in it", path.display());
        return Err(Failure::unusable(words));
    }
    canonical(path).map(Some)
}

/// The failure for a path that cannot be resolved. If a folder of the path does not
/// exist, the message names the folder.
fn unreachable_path(path: &Path, error: &io::Error) -> Failure {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let path = path.display();
    if whole.is_relative() {
        return Failure::unusable(format!(
            "{path} cannot be reached: the current folder does not exist any more; go to \
             another one"
        ));
    }
    match whole.parent() {
        Some(folder) if error.kind() == io::ErrorKind::NotFound => {
            let folder = folder.display();
            Failure::unusable(format!(
                "{path} cannot be reached: the folder {folder} does not exist; create it"
            ))
        }
        _ => Failure::denied(format!("{path} cannot be reached: {error}")),
    }
}

/// Opens the file that [`resolve`] found, or a database in memory.
pub(crate) fn open(
    file: Option<&Path>,
    config: &SqliteConfig,
) -> Result<Connection, Failure> {
    refuse_old_sqlite(rusqlite::version_number())?;
    let Some(file) = file else {
        let mut conn = Connection::open_in_memory()?;
        set_up(&mut conn, config)?;
        schema::prepare(&mut conn, &config.steps)?;
        return Ok(conn);
    };
    refuse_hard_links(file)?;
    schema::check_owner(file)?;
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match config.missing_file {
        MissingFile::Create => flags |= OpenFlags::SQLITE_OPEN_CREATE,
        MissingFile::Refuse => refuse_missing(file)?,
    }
    let mut conn = Connection::open_with_flags(file, flags)?;
    set_up(&mut conn, config)?;
    refuse_read_only(&conn, file)?;
    schema::prepare(&mut conn, &config.steps)?;
    use_log(&conn, config)?;
    Ok(conn)
}

/// Returns the version of the SQLite library that this program is linked with, such as
/// `3.50.2`.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

fn refuse_old_sqlite(version: i32) -> Result<(), Failure> {
    if version >= LOWEST_SQLITE {
        return Ok(());
    }
    let (major, minor) = (version / 1_000_000, version / 1000 % 1000);
    Err(Failure::unusable(format!(
        "the linked SQLite has version {major}.{minor}, and relq needs 3.37 or later; \
         link a newer library, or enable the feature `bundled` of relq-sqlite",
    )))
}

fn set_up(conn: &mut Connection, config: &SqliteConfig) -> Result<(), Failure> {
    BUSY_TIMEOUT.set(config.busy_timeout);
    conn.busy_handler(Some(wait_for_lock as fn(i32) -> bool))?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // Query plans must not depend on bound values. Otherwise SQLite would plan a
    // statement again at each call, which took a quarter of the time, and it might
    // choose another index.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    let synchronous = match config.durability {
        Durability::Full => "PRAGMA synchronous = FULL",
        Durability::Normal => "PRAGMA synchronous = NORMAL",
    };
    conn.execute_batch(&config.steps.text(synchronous))?;
    // On macOS `fsync` returns before the data is on the disk. Other systems ignore
    // these settings.
    conn.pragma_update(None, "fullfsync", config.durability == Durability::Full)?;
    conn.pragma_update(None, "checkpoint_fullfsync", true)?;
    conn.pragma_update(None, "cache_size", CACHE_KIB)?;
    let temp_store = match config.sorts {
        Sorts::InMemory => "MEMORY",
        Sorts::InFile => "FILE",
    };
    conn.pragma_update(None, "temp_store", temp_store)?;
    Ok(())
}

thread_local! {
    /// How long a call on this thread may wait for a lock, and when the wait began. A
    /// busy handler of rusqlite 0.39 is a function pointer, which has no state of its
    /// own. A connection is opened and used on one thread, which uses no other.
    static BUSY_TIMEOUT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static WAIT_BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Waits for a lock up to the busy timeout, in short pauses. SQLite's own handler pauses
/// for up to 100 ms, so that a process that writes often starves the others.
fn wait_for_lock(tries: i32) -> bool {
    let now = Instant::now();
    if tries == 0 {
        WAIT_BEGAN.set(Some(now));
    }
    let waited = WAIT_BEGAN.get().map_or(Duration::ZERO, |began| now - began);
    let left = BUSY_TIMEOUT.get().saturating_sub(waited);
    let nap = NAP + NAP_GROWTH * tries.unsigned_abs();
    thread::sleep(nap.min(LONGEST_NAP).min(left));
    !left.is_zero()
}

fn refuse_missing(file: &Path) -> Result<(), Failure> {
    let found = fs::metadata(file);
    let what = match &found {
        Ok(found) if found.len() == 0 => "is empty",
        Ok(_) if matches!(schema::is_half_created(file), Ok(true)) => {
            "is not completely created"
        }
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => "does not exist",
        // The file cannot be examined. Opening it next fails too, and reports why.
        Err(_) => return Ok(()),
    };
    let file = file.display();
    Err(Failure::unusable(format!(
        "{file} {what}, and this call does not create it; go to the folder of the queue, \
         or push a job first",
    )))
}

fn refuse_read_only(conn: &Connection, file: &Path) -> Result<(), Failure> {
    if conn.is_readonly("main")? {
        let words = format!(
            "{} is read-only, and a queue cannot be worked without writing; allow \
             this user to write to it",
            file.display(),
        );
        return Err(Failure::denied(words));
    }
    Ok(())
}

/// Switches a new file to the write-ahead log. The file keeps this setting. SQLite does
/// not wait for other processes at this step, so this function retries.
fn use_log(conn: &Connection, config: &SqliteConfig) -> Result<(), Failure> {
    let began = Instant::now();
    let mode: String = loop {
        let sql = config.steps.text("PRAGMA journal_mode = WAL");
        let switch = || conn.query_row(&sql, [], |row| row.get(0));
        match config.steps.step("PRAGMA journal_mode", switch) {
            Err(error) if is_busy(&error) && began.elapsed() < config.busy_timeout => {
                thread::sleep(LONGEST_NAP);
            }
            other => break other?,
        }
    };
    if mode != "wal" {
        return Err(Failure::unusable(
            "the file system cannot share memory between processes, which several \
             processes on one file need; use a local disk",
        ));
    }
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Makes a path absolute and resolves its symbolic links. The file itself need not
/// exist yet, but its folder must.
fn canonical(path: &Path) -> Result<PathBuf, Failure> {
    let unreachable = |error: io::Error| unreachable_path(path, &error);
    match fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        other => return other.map_err(unreachable),
    }
    let missing = in_its_folder(path).map_err(unreachable)?;
    // SQLite creates the file that a link names, and names the log after that file.
    match fs::read_link(&missing) {
        Ok(target) => canonical(&missing.with_file_name(target)),
        Err(_) => Ok(missing),
    }
}

/// Makes a path absolute and resolves the symbolic links of its folder.
fn in_its_folder(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    match (path.parent(), path.file_name()) {
        (Some(folder), Some(name)) => Ok(fs::canonicalize(folder)?.join(name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pragma(conn: &Connection, name: &str) -> i64 {
        conn.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_old_library_is_refused_with_the_version_that_is_needed() {
        refuse_old_sqlite(3_037_000).unwrap();

        let refused = refuse_old_sqlite(3_036_002).unwrap_err();

        let words = format!("{refused:?}");
        assert!(words.contains("version 3.36, and relq needs 3.37"), "{words}");
    }

    /// R23: only the connection for long reads sorts in a temporary file. It runs
    /// audits, which sort all jobs, and those may not fit into memory.
    #[test]
    fn only_a_connection_that_reads_may_sort_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queue.db");
        for (sorts, temp_store) in [(Sorts::InFile, 1), (Sorts::InMemory, 2)] {
            let config = SqliteConfig { sorts, ..SqliteConfig::file(&file) };
            let conn = open(Some(&file), &config).unwrap();
            assert_eq!(pragma(&conn, "temp_store"), temp_store, "{sorts:?}");
        }
    }

    /// R1: a durable commit sets `fullfsync`, because on macOS a plain `fsync` does not
    /// wait for the disk.
    #[test]
    fn a_commit_waits_for_the_disk_on_every_system() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("queue.db");
        for (durability, fullfsync) in [(Durability::Full, 1), (Durability::Normal, 0)]
        {
            let config = SqliteConfig::file(&file).durability(durability);
            let conn = open(Some(&file), &config).unwrap();
            assert_eq!(pragma(&conn, "fullfsync"), fullfsync, "{durability:?}");
            assert_eq!(pragma(&conn, "checkpoint_fullfsync"), 1, "{durability:?}");
        }
    }
}
