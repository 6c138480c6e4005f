//! Tests of files that a queue cannot use. The queue refuses such a file, names the
//! reason, and does not change the file.

use std::{fs, path::Path};

use relq_core::{
    Error, Operator as _, ReliableQueue as _, ReliableQueueExt as _,
    error::RetryAdvice,
    operator::{JobState, PeekRequest},
};
use relq_sqlite::{MissingFile, SqliteConfig};

use crate::fixture::{Folder, ask, many, open, raw};

async fn refusal(file: &Path) -> Error {
    open(SqliteConfig::file(file)).await.unwrap_err()
}

fn assert_unusable(error: &Error, words: &str) {
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert_eq!(error.retry_advice(), RetryAdvice::Never);
    assert!(error.full_message().contains(words), "{}", error.full_message());
}

/// Returns the name and the content of every file in a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_as_it_is() {
    let folder = Folder::new();
    fs::write(folder.file(), "Dear diary, today I pushed a job. ".repeat(20)).unwrap();
    let before = contents(folder.path());

    let error = refusal(&folder.file()).await;

    assert_unusable(&error, "is not a SQLite database");
    assert_eq!(contents(folder.path()), before);
}

#[tokio::test]
async fn a_short_file_is_left_as_it_is() {
    let folder = Folder::new();
    fs::write(folder.file(), "x").unwrap();

    assert_unusable(&refusal(&folder.file()).await, "is not a SQLite database");

    assert_eq!(fs::read(folder.file()).unwrap(), b"x");
}

#[tokio::test]
async fn the_database_of_another_program_is_left_as_it_is() {
    let folder = Folder::new();
    raw(&folder.file()).execute_batch("CREATE TABLE jobs (theirs)").unwrap();
    let before = contents(folder.path());

    let error = refusal(&folder.file()).await;

    assert_unusable(&error, "is the database of another program");
    assert_eq!(contents(folder.path()), before);
}

/// relq does not touch the write-ahead log of another program's database, even if the
/// program has not yet copied the log into the database.
#[tokio::test]
async fn the_log_of_another_program_is_left_as_it_is() {
    let folder = Folder::new();
    let theirs = raw(&folder.file());
    let log = "PRAGMA journal_mode = WAL; CREATE TABLE jobs (theirs)";
    theirs.execute_batch(log).unwrap();
    let before = contents(folder.path());

    let error = refusal(&folder.file()).await;

    assert_unusable(&error, "is the database of another program");
    assert_eq!(contents(folder.path()), before);
    drop(theirs);
}

#[tokio::test]
async fn a_file_of_a_newer_relq_is_left_as_it_is() {
    let folder = Folder::new();
    drop(folder.queue().await);
    raw(&folder.file()).pragma_update(None, "user_version", 999).unwrap();

    let error = refusal(&folder.file()).await;

    assert_unusable(&error, "schema version 999");
    let version = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let kept = raw(&folder.file()).pragma_query_value(None, "user_version", version);
    assert_eq!(kept, Ok(999));
}

#[tokio::test]
async fn an_empty_file_is_taken() {
    let folder = Folder::new();
    fs::write(folder.file(), "").unwrap();

    folder.queue().await.push_one("hello".into()).await.unwrap();
}

#[tokio::test]
async fn a_folder_is_refused() {
    let folder = Folder::new();

    assert_unusable(&refusal(folder.path()).await, "is a folder");
}

#[tokio::test]
async fn a_file_in_a_missing_folder_is_refused() {
    let folder = Folder::new();

    let error = refusal(&folder.path().join("missing").join("queue.db")).await;

    let missing = folder.path().join("missing");
    let words = format!("the folder {} does not exist", missing.display());
    assert_unusable(&error, &words);
}

/// A link to a file on another disk is often made before the file. SQLite creates the file
/// that the link names, and keeps the log beside that file.
#[cfg(unix)]
#[tokio::test]
async fn a_file_is_created_where_a_link_leads() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("disk")).unwrap();
    symlink(path("absolute.db"), path("absolute")).unwrap();
    symlink("disk/link", path("relative")).unwrap();
    symlink("../relative.db", path("disk/link")).unwrap();

    for name in ["absolute", "relative"] {
        let queue = open(SqliteConfig::file(path(name))).await.unwrap();
        queue.push_one("job".into()).await.unwrap();

        let file = path(name).with_extension("db");
        let same = open(SqliteConfig::file(file)).await.unwrap();
        assert_eq!(same.stats().await.unwrap().ready, 1, "{name}");
    }
}

/// The error names the folder in which the file would be, and not that of the link.
#[cfg(unix)]
#[tokio::test]
async fn a_link_into_a_missing_folder_is_refused() {
    let folder = Folder::new();
    let (link, missing) = (folder.path().join("link"), folder.path().join("missing"));
    std::os::unix::fs::symlink(missing.join("queue.db"), &link).unwrap();

    let error = refusal(&link).await;

    let words = format!("the folder {} does not exist", missing.display());
    assert_unusable(&error, &words);
}

/// R1: each hard link of a file has a log of its own. Processes that use two of them
/// overwrite each other's jobs.
#[cfg(unix)]
#[tokio::test]
async fn a_file_with_two_hard_links_is_refused_by_both_names() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("job".into()).await.unwrap();
    let other = folder.path().join("other.db");
    fs::hard_link(folder.file(), &other).unwrap();

    for name in [&other, &folder.file()] {
        let error = refusal(name).await;
        assert_unusable(&error, "2 hard links");
        assert_unusable(&error, &name.file_name().unwrap().to_string_lossy());
    }

    queue.push_one("another job".into()).await.unwrap();
    fs::remove_file(&other).unwrap();
    assert_eq!(folder.queue().await.stats().await.unwrap().ready, 2);
}

/// A program that only reads does not create a missing file, because its path may be
/// wrong.
#[tokio::test]
async fn a_missing_file_is_not_created_by_a_reader() {
    let folder = Folder::new();
    let reader = || folder.config().missing_file(MissingFile::Refuse);

    assert_unusable(&open(reader()).await.unwrap_err(), "does not exist");
    assert_eq!(contents(folder.path()), []);

    fs::write(folder.file(), "").unwrap();
    assert_unusable(&open(reader()).await.unwrap_err(), "is empty");
    assert_eq!(contents(folder.path()), [("queue.db".to_owned(), Vec::new())]);

    folder.queue().await.push_one("job".into()).await.unwrap();
    assert_eq!(open(reader()).await.unwrap().stats().await.unwrap().ready, 1);
}

/// If the process that creates the file dies, the next one that may create it begins again.
/// Until then the header of the file is not that of a relq file.
#[tokio::test]
async fn a_half_created_file_is_created_again() {
    let (folder, creator) = (Folder::new(), Folder::new());
    let creating = raw(&creator.file());
    // The cache is too small for the row, so that pages are written before the commit.
    let half = "PRAGMA cache_size = 1; BEGIN IMMEDIATE; CREATE TABLE half (x); \
                INSERT INTO half VALUES (zeroblob(1000000))";
    creating.execute_batch(half).unwrap();
    for ending in ["db", "db-journal"] {
        let [from, to] = [&creator, &folder].map(|it| it.file().with_extension(ending));
        assert!(fs::copy(from, to).unwrap() > 0, "{ending}");
    }
    let before = contents(folder.path());

    let reader = folder.config().missing_file(MissingFile::Refuse);
    assert_unusable(&open(reader).await.unwrap_err(), "is not completely created");
    assert_eq!(contents(folder.path()), before);

    folder.queue().await.push_one("job".into()).await.unwrap();
    assert_eq!(folder.queue().await.stats().await.unwrap().ready, 1);
}

/// A damaged page is reported by a call that reads it, and by the audit.
#[tokio::test]
async fn a_damaged_file_is_reported() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for _ in 0..50 {
        queue.push_one(vec![7; 1000].into()).await.unwrap();
    }
    folder.close(queue).await;
    damage(&folder.file());

    let found = match open(folder.config()).await {
        Ok(queue) => queue.audit().await.map(|audit| audit.problems),
        Err(error) => Err(error),
    };

    match found {
        Ok(problems) => assert!(!problems.is_empty()),
        Err(error) => assert_unusable(&error, "damaged"),
    }
}

/// Overwrites all pages of a file except the first two.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    assert!(bytes.len() > 40_000, "there is something to damage");
    bytes[8192..].fill(0xA5);
    fs::write(file, bytes).unwrap();
}

/// R1: a push into a file that was deleted does not return Ok, because no process can
/// open the file any more.
#[tokio::test]
async fn a_file_deleted_under_an_open_queue_takes_no_jobs() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    fs::remove_file(folder.file()).unwrap();

    let error = queue.push_one("lost".into()).await.unwrap_err();

    assert_unusable(&error, "was deleted or moved");
}

/// R1: if another file replaced the open one, a push fails, and the error says what to
/// do.
#[tokio::test]
async fn a_file_replaced_under_an_open_queue_takes_no_jobs() {
    let (folder, other) = (Folder::new(), Folder::new());
    let queue = folder.queue().await;
    drop(other.queue().await);
    fs::rename(other.file(), folder.file()).unwrap();

    let error = queue.push_one("lost".into()).await.unwrap_err();

    assert_unusable(&error, "names another file now");
    assert_unusable(&error, &folder.file().display().to_string());
}

/// R1: nor does a push return Ok if the log or the shared memory was deleted or replaced.
/// Each commit goes to the log first, and other processes begin a new one.
#[tokio::test]
async fn a_log_deleted_under_an_open_queue_takes_no_jobs() {
    for ending in ["db-wal", "db-shm"] {
        let folder = Folder::new();
        let queue = folder.queue().await;
        let deleted = folder.file().with_extension(ending);
        fs::remove_file(&deleted).unwrap();

        let error = queue.push_one("lost".into()).await.unwrap_err();

        assert_unusable(&error, "was deleted or moved");
        assert_unusable(&error, &deleted.display().to_string());
        fs::write(&deleted, "").unwrap();
        let error = queue.push_one("lost".into()).await.unwrap_err();
        assert_unusable(&error, "names another file now");
    }
}

/// R23: stats never come from another file, even if the connection that reads them is
/// opened after the queue's file was replaced.
#[tokio::test]
async fn stats_of_a_replaced_file_are_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    let queue = folder.queue().await;
    queue.push_one("kept".into()).await.unwrap();
    drop(other.queue().await);
    fs::rename(other.file(), folder.file()).unwrap();

    let error = queue.stats().await.unwrap_err();

    assert_unusable(&error, "names another file now");
}

/// R1: a second handle of a deleted file does not create a new and empty file.
#[tokio::test]
async fn another_handle_of_a_deleted_file_makes_no_new_one() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    fs::remove_file(folder.file()).unwrap();

    let error = queue.open_another().await.unwrap_err();

    assert_unusable(&error, "was deleted or moved");
    assert!(!folder.file().exists());
}

/// If a file was moved away and is moved back, the open queue works again.
#[tokio::test]
async fn a_file_that_is_put_back_is_used_again() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let aside = folder.path().join("aside.db");
    fs::rename(folder.file(), &aside).unwrap();
    queue.push_one("refused".into()).await.unwrap_err();
    fs::rename(&aside, folder.file()).unwrap();

    queue.push_one("kept".into()).await.unwrap();

    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

/// The connection for stats is opened by the first call that needs it. If that failed, the
/// next call opens it again.
#[tokio::test]
async fn stats_of_a_file_that_is_put_back_are_read_again() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("kept".into()).await.unwrap();
    let aside = folder.path().join("aside.db");
    fs::rename(folder.file(), &aside).unwrap();
    assert_unusable(&queue.stats().await.unwrap_err(), "was deleted or moved");

    fs::rename(&aside, folder.file()).unwrap();

    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

/// R3: a job whose row was changed by another program is buried with its bytes. The
/// jobs behind it are still delivered.
#[tokio::test]
async fn a_job_with_damaged_headers_is_buried() {
    use relq_core::NewJob;
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one(NewJob::new("first").header("name", "value")).await.unwrap();
    queue.push_one("second".into()).await.unwrap();
    let sql = "UPDATE bodies SET headers = x'FF' WHERE headers IS NOT NULL";
    raw(&folder.file()).execute_batch(sql).unwrap();
    assert_eq!(queue.audit().await.unwrap().problems.len(), 1);

    let claimed = queue.claim_one(&crate::fixture::ask("w")).await.unwrap().unwrap();

    assert_eq!(&claimed.payload[..], b"second");
    let dead = PeekRequest::new(JobState::Dead, crate::fixture::many(9));
    let dead = queue.peek(&dead).await.unwrap().jobs;
    assert_eq!(&dead[0].payload[..], b"first");
}

/// R23: the audit finds a missing payload, and its job is not delivered.
#[tokio::test]
async fn a_job_without_its_payload_is_found() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("gone".into()).await.unwrap();
    raw(&folder.file()).execute_batch("DELETE FROM bodies").unwrap();

    let problems = queue.audit().await.unwrap().problems;

    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("has no payload"), "{problems:?}");
    assert_eq!(queue.claim_one(&crate::fixture::ask("w")).await.unwrap(), None);
    assert_eq!(queue.stats().await.unwrap().dead, 1);
}

/// B5, B8: a piece that cannot be delivered has failed. The claim that finds the last piece so
/// completes its batch.
#[tokio::test]
async fn a_piece_without_its_payload_completes_its_batch() {
    use relq_core::batch::{BatchId, BatchOutcome, BatchQueue as _, NewBatch};
    let folder = Folder::new();
    let queue = folder.queue().await;
    let id = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(id.clone())).await.unwrap();
    queue.add(&id, &["gone".into()], None).await.unwrap();
    queue.seal(&id).await.unwrap();
    raw(&folder.file()).execute_batch("DELETE FROM bodies").unwrap();

    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    let status = queue.batch(&id).await.unwrap().unwrap();
    assert_eq!((status.failed, status.outcome()), (1, Some(BatchOutcome::Failed)));
}

/// The queue refuses to write after a newer relq has migrated its file, because
/// statements for the older tables could damage the new ones.
#[tokio::test]
async fn a_file_that_was_migrated_while_open_is_not_written() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("before".into()).await.unwrap();
    raw(&folder.file()).pragma_update(None, "user_version", 99).unwrap();

    let pushed = queue.push_one("after".into()).await.unwrap_err();
    let claimed = queue.claim(&ask("w")).await.unwrap_err();
    for error in [pushed, claimed] {
        assert_unusable(&error, "schema version 99");
        assert!(error.full_message().contains("restart"), "{}", error.full_message());
    }
    // The call for statistics opens a second connection, which must refuse too.
    assert_unusable(&queue.stats().await.unwrap_err(), "schema version 99");
    let jobs: i64 = raw(&folder.file())
        .query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))
        .unwrap();
    assert_eq!(jobs, 1);
}

/// The queue does not read such a file either, even over connections that were open before
/// the migration: the tables may have another meaning.
#[tokio::test]
async fn a_file_that_was_migrated_while_open_is_not_read() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    assert_eq!(queue.stats().await.unwrap().ready, 0);
    raw(&folder.file()).pragma_update(None, "user_version", 99).unwrap();

    let stats = queue.stats().await.unwrap_err();
    let ready = PeekRequest::new(JobState::Ready, many(1));
    let peeked = queue.peek(&ready).await.unwrap_err();
    // No job is ready, so the claim would only look.
    let claimed = queue.claim(&ask("w")).await.unwrap_err();

    for error in [stats, peeked, claimed] {
        assert_unusable(&error, "schema version 99");
    }
}

/// The queue works again once the file has the schema version of this program again.
#[tokio::test]
async fn a_file_with_its_old_version_again_is_served() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let version: i64 = raw(&folder.file())
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .unwrap();
    raw(&folder.file()).pragma_update(None, "user_version", 99).unwrap();
    queue.push_one("refused".into()).await.unwrap_err();
    raw(&folder.file()).pragma_update(None, "user_version", version).unwrap();
    queue.push_one("served".into()).await.unwrap();
}
