//! Tests of the list of queues.

use relq_core::{Error, QueueName};
use relq_sqlite::{SqliteConfig, SqliteQueue, queues};

use crate::fixture::{Folder, many, raw};

fn name(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

/// All queues of a file are listed, each once, in pages of any size.
#[tokio::test]
async fn each_queue_is_on_one_page() {
    let folder = Folder::new();
    let names = ["", "B", "a", "a.b", "é"].map(|it| format!("q{it}"));
    for one in &names {
        SqliteQueue::open(folder.config(), name(one)).await.unwrap();
    }

    for limit in [1, 2, 5, 100] {
        let mut found = Vec::new();
        loop {
            let config = folder.config();
            let page = queues(config, found.last(), many(limit)).await.unwrap();
            assert!(page.len() <= limit as usize);
            if page.is_empty() {
                break;
            }
            found.extend(page);
        }
        assert_eq!(found, names.clone().map(|one| name(&one)), "{limit} a page");
    }
}

/// The list adds no queue, and creates no file.
#[tokio::test]
async fn a_list_changes_nothing() {
    let folder = Folder::new();

    let missing = queues(folder.config(), None, many(9)).await.unwrap_err();
    assert!(matches!(missing, Error::Unusable { .. }), "{missing:?}");
    assert!(!folder.file().exists());
    let in_memory = queues(SqliteConfig::memory(), None, many(9)).await.unwrap_err();
    assert!(matches!(in_memory, Error::Invalid { .. }), "{in_memory:?}");
    let queue = folder.queue().await;
    let version = || -> i64 {
        let other = raw(&folder.file());
        other.query_row("SELECT count(*) FROM queues", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(queues(folder.config(), None, many(9)).await.unwrap(), [name("jobs")]);
    assert_eq!(version(), 1);
    drop(queue);
}

/// The database of another program is refused, and so is a file of a newer relq.
#[tokio::test]
async fn a_foreign_file_has_no_list() {
    let folder = Folder::new();
    folder.close(folder.queue().await).await;
    let set = |what: &str, to: u32| raw(&folder.file()).pragma_update(None, what, to);

    set("user_version", 99).unwrap();
    let newer = queues(folder.config(), None, many(9)).await.unwrap_err();
    set("application_id", 7).unwrap();
    let foreign = queues(folder.config(), None, many(9)).await.unwrap_err();

    assert!(newer.full_message().contains("version 99"), "{newer:?}");
    assert!(foreign.full_message().contains("another program"), "{foreign:?}");
}

/// R21: a file that another process has locked is listed: a reader waits for no writer.
#[tokio::test]
async fn a_locked_file_is_listed() {
    let folder = Folder::new();
    let _queue = folder.queue().await;
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    assert_eq!(queues(folder.config(), None, many(9)).await.unwrap(), [name("jobs")]);
}
