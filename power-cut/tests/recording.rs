//! Tests of the recording of SQLite's changes, and of the files that power cuts leave.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{collections::HashSet, path::Path};

use relq_power_cut::{Cut, Disk, Event, Files, Kept, Recording, sample};
use rusqlite::Connection;

fn write(offset: usize, byte: u8, length: usize) -> Event {
    Event::Write { node: 0, offset, bytes: vec![byte; length] }
}

/// Returns a recording of a file that exists at the start and gets two unsynced writes.
fn two_writes() -> Recording {
    let first = Files([("a".to_owned(), b"....".to_vec())].into());
    Recording { first, events: vec![write(0, b'x', 2), write(2, b'y', 2)] }
}

fn file_after(recording: &Recording, kept: Kept) -> Vec<u8> {
    let cut = Cut { at: recording.events.len(), names: 0, kept };
    recording.images([cut]).next().unwrap().files.0["a"].clone()
}

#[test]
fn a_cut_keeps_any_choice_of_what_is_not_synced() {
    let recording = two_writes();
    for (kept, left) in [
        (Kept::None, "...."),
        (Kept::All, "xxyy"),
        (Kept::Only(1), "..yy"),
        (Kept::Without(1), "xx.."),
        (Kept::Torn(1), "xxy."),
    ] {
        assert_eq!(file_after(&recording, kept), left.as_bytes(), "{kept:?}");
    }
}

#[test]
fn a_cut_keeps_what_is_synced() {
    let mut recording = two_writes();
    recording.events.insert(1, Event::Sync { node: 0 });

    assert_eq!(file_after(&recording, Kept::None), b"xx..");
}

#[test]
fn a_torn_write_ends_at_a_sector_of_the_file() {
    let events = vec![write(500, b'x', 1000)];
    let torn: Vec<_> = Recording { events, ..two_writes() }
        .cuts()
        .into_iter()
        .filter(|cut| matches!(cut.kept, Kept::Torn(_)))
        .map(|cut| cut.kept)
        .collect();

    assert_eq!(torn, [Kept::Torn(12), Kept::Torn(524)]);
}

#[test]
fn a_name_is_there_once_its_folder_is_synced() {
    let create = Event::Create { name: "b".to_owned(), node: 1 };
    let events = vec![create, Event::Sync { node: 1 }, Event::SyncFolder];
    let recording = Recording { events, ..two_writes() };
    let is_there = |at, names| {
        let cut = Cut { at, names, kept: Kept::None };
        recording.images([cut]).next().unwrap().files.0.contains_key("b")
    };

    assert!(!is_there(2, 0));
    assert!(is_there(2, 1));
    assert!(is_there(3, 0));
}

/// Commits rows to a SQLite file with the given value of `PRAGMA synchronous`. Returns
/// whether after each power cut every row exists that was committed before it.
fn keeps_rows(synchronous: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::record(folder.path()).unwrap();
    let conn = Connection::open(folder.path().join("rows.db")).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x)").unwrap();
    conn.pragma_update(None, "synchronous", synchronous).unwrap();
    for row in 1..=5 {
        conn.execute("INSERT INTO t VALUES (?1)", [row]).unwrap();
        disk.mark(row);
    }
    let recording = disk.recording();
    assert_eq!(sample(&recording, 300, 7), sample(&recording, 300, 7));
    recording.images(sample(&recording, 300, 7)).all(|image| {
        let rows = rows_of(&image.files);
        let least = image.marks.last().copied().unwrap_or(0);
        least == 0 || rows.is_some_and(|rows| rows >= least)
    })
}

fn rows_of(files: &Files) -> Option<u64> {
    let folder = tempfile::tempdir().unwrap();
    let _disk = Disk::without_syncs(folder.path()).unwrap();
    files.write(folder.path()).unwrap();
    count(&folder.path().join("rows.db"))
}

fn count(file: &Path) -> Option<u64> {
    let conn = Connection::open(file).ok()?;
    conn.query_row("SELECT count(*) FROM t", [], |row| row.get(0)).ok()
}

#[test]
fn sqlite_keeps_commits_that_it_syncs() {
    assert!(keeps_rows("FULL"));
}

#[test]
fn sqlite_loses_commits_that_it_does_not_sync() {
    assert!(!keeps_rows("NORMAL"));
}

#[test]
fn each_cut_is_listed_once() {
    let cuts = two_writes().cuts();
    let different: HashSet<_> = cuts.iter().collect();
    assert_eq!(cuts.len(), different.len());
}
