//! A file that this user may read but not write.

#![cfg(unix)]

use std::{
    fs::{self, Permissions},
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::PathBuf,
};

use relq_core::{Error, ReliableQueueExt as _, error::RetryAdvice};
use relq_sqlite::SqliteConfig;

use crate::fixture::{Folder, child, file_of_child, open};

/// The user `nobody`. Tests that run as root need it, because root may write to every
/// file.
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
    drop(queue);
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
    assert_eq!(fs::read(folder.file()).unwrap(), before);
}

/// Copies this program to a folder that `nobody` can reach.
fn copy_of_this_program(folder: &Folder) -> PathBuf {
    let copy = folder.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    set_mode(copy.clone(), 0o755);
    copy
}

fn set_mode(path: PathBuf, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether the folder belongs to root, for whom permissions do not apply.
fn is_roots(folder: &Folder) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata(folder.path()).unwrap().uid() == 0
}
