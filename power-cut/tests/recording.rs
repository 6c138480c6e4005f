//! Tests of the recording of SQLite's changes, and of the files that power cuts leave.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

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

/// The files that a cut leaves at the end of these events, which begin with two files of
/// four dots. The files have the numbers 0 and 1.
fn left(events: &[Event], names: usize, kept: Kept) -> BTreeMap<String, String> {
    let first = ["a", "b"].map(|name| (name.to_owned(), b"....".to_vec()));
    let recording = Recording { first: Files(first.into()), events: events.to_vec() };
    let cut = Cut { at: events.len(), names, kept };
    let files = recording.images([cut]).next().unwrap().files.0.into_iter();
    files.map(|(name, bytes)| (name, String::from_utf8(bytes).unwrap())).collect()
}

fn files<const COUNT: usize>(files: [(&str, &str); COUNT]) -> BTreeMap<String, String> {
    files.map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

/// A database may rely on a write only if the file of that write was synced.
#[test]
fn a_sync_keeps_the_writes_of_its_file_alone() {
    for (synced, expected) in [(0, ["xx..", "...."]), (1, ["....", "yy.."])] {
        let to_b = Event::Write { node: 1, offset: 0, bytes: vec![b'y'; 2] };
        let events = [write(0, b'x', 2), to_b, Event::Sync { node: synced }];

        let seen = left(&events, 0, Kept::None);

        let [a, b] = expected;
        assert_eq!(seen, files([("a", a), ("b", b)]), "file {synced} is synced");
    }
}

#[test]
fn a_truncation_that_is_not_synced_may_be_lost() {
    let truncate = Event::Truncate { node: 1, length: 1 };
    let events = [truncate.clone()];

    let (none, all) = (left(&events, 0, Kept::None), left(&events, 0, Kept::All));
    let synced = left(&[truncate, Event::Sync { node: 1 }], 0, Kept::None);

    assert_eq!(none, files([("a", "...."), ("b", "....")]));
    assert_eq!(all, files([("a", "...."), ("b", ".")]));
    assert_eq!(synced, files([("a", "...."), ("b", ".")]));
}

#[test]
fn a_deleted_file_comes_back_until_its_folder_is_synced() {
    let delete = Event::Delete { name: "b".to_owned() };
    let events = [delete.clone()];

    let (lost, kept) = (left(&events, 0, Kept::None), left(&events, 1, Kept::None));
    let synced = left(&[delete, Event::SyncFolder], 0, Kept::None);

    assert_eq!(lost, files([("a", "...."), ("b", "....")]));
    assert_eq!(kept, files([("a", "....")]));
    assert_eq!(synced, files([("a", "....")]));
}

/// The cuts that find most broken promises are in each sample, however small.
#[test]
fn a_sample_has_the_cuts_right_after_each_mark() {
    let mut recording = two_writes();
    recording.events.insert(1, Event::Mark(7));
    recording.events.push(Event::Mark(8));

    let after_marks = [2, 4].map(|at| Cut { at, names: 0, kept: Kept::None });
    assert_eq!(sample(&recording, 0, 7), after_marks);
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
