//! MUTANT-KILL: mutants that do not wait for the disk where they must. Tests that kill
//! processes cannot catch them, because the operating system keeps what a killed
//! process wrote.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use relq_core::QueueName;
use relq_sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{Replace, with_statements_replaced},
};
use tempfile::TempDir;

use crate::programs::{
    all_calls, callers_together, migrate_from, rare_calls, two_stores,
};
use crate::run::Run;

const FULL: &str = "PRAGMA synchronous = FULL";

/// A mutation that replaces one text by another in all statements.
fn swap(from: &'static str, to: &'static str) -> Replace {
    Arc::new(move |sql| sql.contains(from).then(|| sql.replace(from, to)))
}

fn assert_caught(failures: &[String], check: &str) {
    let is_caught = failures.iter().any(|words| words.contains(check));
    assert!(is_caught, "{check} does not catch it: {failures:#?}");
}

/// R1: a mutant with the setting `NORMAL` in place of `FULL`. Its commits return before
/// their data is on the disk.
#[test]
fn a_setting_lower_than_asked_for_is_caught() {
    let run = || {
        let replace = swap(FULL, "PRAGMA synchronous = NORMAL");
        Run::broken("a_setting_lower_than_asked_for", Durability::Full, replace)
    };
    assert_caught(&run().judge(all_calls), "ACKNOWLEDGED (R1, R8)");
    assert_caught(&run().judge(rare_calls), "ACKNOWLEDGED (R1, R8)");
    assert_caught(&run().judge(two_stores), "ACKNOWLEDGED (R1, R8)");
}

/// R1: a mutant that sets `FULL` only on the first connection of a handle.
#[test]
fn a_setting_of_the_first_connection_only_is_caught() {
    let connections = AtomicUsize::new(0);
    let replace: Replace = Arc::new(move |sql| {
        let is_later = sql == FULL && connections.fetch_add(1, Ordering::SeqCst) > 0;
        is_later.then(|| "PRAGMA synchronous = NORMAL".to_owned())
    });
    let run = Run::broken("a_setting_of_the_first", Durability::Full, replace);
    assert_caught(&run.judge(all_calls), "ACKNOWLEDGED (R1, R8)");
}

/// R1: a mutant without a write-ahead log. Its commit deletes a rollback journal, but
/// SQLite does not sync the folder then, so after a power cut the journal is back and
/// undoes the commit. The queue does not open, because the log is missing.
#[tokio::test]
async fn a_new_file_without_a_log_is_caught() {
    let folder = TempDir::new().unwrap();
    let config = SqliteConfig::file(folder.path().join("queue.db"));
    let replace = swap("PRAGMA journal_mode = WAL", "SELECT 'wal'");
    let config = with_statements_replaced(config, replace);

    let refused = SqliteQueue::open(config, QueueName::new("jobs").unwrap()).await;

    let message = refused.expect_err("it does not open").full_message();
    assert!(message.contains("queue.db-wal"), "{message}");
}

/// R1: a mutant that returns results to half of the callers before their commit.
#[test]
fn answers_before_the_commit_are_caught() {
    let (is_open, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    let replace: Replace = Arc::new(move |sql| match sql {
        "COMMIT" if count.fetch_add(1, Ordering::SeqCst) % 2 == 0 => {
            is_open.store(true, Ordering::SeqCst);
            Some("SAVEPOINT answered".to_owned())
        }
        "BEGIN IMMEDIATE" if is_open.swap(false, Ordering::SeqCst) => {
            Some("RELEASE answered".to_owned())
        }
        _ => None,
    });
    let run = Run::broken("answers_before_the_commit", Durability::Full, replace);
    assert_caught(&run.judge(callers_together), "ACKNOWLEDGED (R1, R8)");
}

/// R1: a mutant whose checkpoint writes pages into the file before the log is on the
/// disk.
#[test]
fn a_checkpoint_without_a_sync_is_caught() {
    let replace = swap("PRAGMA synchronous = NORMAL", "PRAGMA synchronous = OFF");
    let run = Run::broken("a_checkpoint_without_a_sync", Durability::Normal, replace);
    assert_caught(&run.judge(all_calls), "WHOLE (R1)");
}

/// R1: a mutant that migrates in two transactions. A cut between them leaves a file
/// that no relq opens.
#[test]
fn a_migration_in_two_transactions_is_caught() {
    let replace: Replace = Arc::new(|sql| {
        let is_second = sql == include_str!("../../sql/schema_2.sql");
        is_second.then(|| format!("{sql}; COMMIT; BEGIN IMMEDIATE;"))
    });
    let run = Run::broken("a_migration_in_two", Durability::Full, replace);
    let failures = run.judge(|run| migrate_from(run, 1));
    assert_caught(&failures, "WHOLE (R1)");
}
