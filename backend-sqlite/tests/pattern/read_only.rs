//! Tests of a file that the user of the process may read but not write.

#![cfg(unix)]

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
    process::Command,
};

use relq_core::{Error, ReliableQueueExt as _, error::RetryAdvice};
use relq_sqlite::SqliteConfig;

use crate::fixture::{Folder, child, file_of_child, open};

/// The user id of `nobody`. If the tests run as root, a child process runs as this
/// user, because root may write to every file.
const NOBODY: u32 = 65534;

#[tokio::test]
#[ignore = "started by another test, as a user that may not write"]
async fn child_is_denied() {
    let error = open(SqliteConfig::file(file_of_child())).await.unwrap_err();

    assert!(matches!(error, Error::Denied { .. }), "{error:?}");
    assert_eq!(error.retry_advice(), RetryAdvice::Never);
    assert!(error.full_message().contains("allow this user"), "{error:?}");
}

#[tokio::test]
async fn a_read_only_file_is_denied() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one("hello".into()).await.unwrap();
    folder.close(queue).await;
    let program = copy_of_this_program(&folder);
    set_mode(folder.file(), 0o444);
    set_mode(folder.path().into(), 0o555);
    let before = fs::read(folder.file()).unwrap();

    let mut command = child(&program, "read_only::child_is_denied", &folder.file());
    if is_roots(&folder) {
        command.uid(NOBODY).gid(NOBODY);
    }
    let ended = command.status().unwrap();

    set_mode(folder.path().into(), 0o755);
    assert!(ended.success(), "the child says more");
    assert!(fs::read(folder.file()).unwrap() == before, "the file was changed");
}

/// Copies this program to a folder from which the user `nobody` may run it. If this
/// process had the copy open for writing, a child that another test starts at that moment
/// would keep it open, and the copy could not be run.
fn copy_of_this_program(folder: &Folder) -> PathBuf {
    let copy = folder.path().join("program");
    let program = std::env::current_exe().unwrap();
    let copied = Command::new("cp").arg(program).arg(&copy).status().unwrap();
    assert!(copied.success());
    set_mode(copy.clone(), 0o755);
    copy
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether root owns the folder. If so, the test runs as root, and file permissions do
/// not restrict it.
fn is_roots(folder: &Folder) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder.path()).unwrap().uid() == 0
}
