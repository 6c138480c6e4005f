//! Commands in the wrong folder: a command that only reads does not create a store that
//! does not exist.

use crate::relq::{Relq, Store, wait_until};

fn in_folder(store: &Store, line: &str) -> Relq {
    store.relq(line).no_env("RELQ_URL")
}

fn files(store: &Store) -> Vec<String> {
    let entries = std::fs::read_dir(store.folder.path()).unwrap();
    entries.map(|it| it.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_command_that_reads_creates_no_store_and_says_so() {
    let store = Store::sqlite();
    for line in [
        "stats",
        "stats --json",
        "peek",
        "audit",
        "recover",
        "cancel some-id",
        "result some-id",
        "result some-id --wait",
        "pause",
        "resume",
        "purge --yes",
        "dead list",
        "dead redrive --all",
        "dead purge --all",
        "batch list",
        "batch status some-id",
        "batch wait some-id",
        "batch alter some-id --priority 3",
        "batch cancel some-id",
        "queues",
        "workers",
        "show x",
        "run x",
        "export",
        "work --until-empty --exec cat",
    ] {
        let error = in_folder(&store, line).fails(1);
        assert_eq!(files(&store), [""; 0], "{line}");
        let folder = store.folder.path().canonicalize().unwrap();
        let file = folder.join("relq.db");
        assert!(error.contains(&file.display().to_string()), "{line}: {error}");
        assert!(error.contains("does not exist"), "{line}: {error}");
        assert!(error.contains("--url"), "{line}: {error}");
    }
}

#[cfg(feature = "redis")]
#[test]
fn a_command_about_redis_creates_no_file() {
    let store = Store::sqlite();
    for line in ["marker show", "marker set", "marker remove"] {
        in_folder(&store, line).fails(2);
        assert_eq!(files(&store), [""; 0], "{line}");
    }
}

#[test]
fn an_empty_file_is_no_store_to_read() {
    let store = Store::sqlite();
    std::fs::write(store.file("relq.db"), "").unwrap();
    let error = in_folder(&store, "stats").fails(1);
    assert!(error.contains("is empty"), "{error}");
    assert_eq!(std::fs::read(store.file("relq.db")).unwrap(), b"");
    assert_eq!(files(&store), ["relq.db"]);
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let store = Store::sqlite();
    let missing = store.file("no").join("dir");
    let url = format!("sqlite:{}", missing.join("x.db").display());
    for line in ["push a", "stats"] {
        let error = store.relq(line).env("RELQ_URL", &url).fails(1);
        let named = format!("the folder {} does not exist", missing.display());
        assert!(error.contains(&named), "{error}");
        assert!(!error.contains("password"), "{error}");
        assert!(!error.contains("denied"), "{error}");
    }
}

/// A worker creates a store that does not exist, because a service may start before its
/// producers.
#[test]
fn a_worker_that_waits_for_jobs_creates_the_store_and_says_so() {
    let store = Store::sqlite();
    let mut working = in_folder(&store, "work --exec cat").start();
    working.wait_for_error("relq.db does not exist");
    wait_until("the store is created", || store.file("relq.db").exists());
    in_folder(&store, "push job").ok();
    wait_until("the job is done", || {
        in_folder(&store, "stats --json").json()["finished"] == 1
    });
    working.signal(rustix::process::Signal::TERM);
    assert_eq!(working.end().code, Some(0));
}

/// A push creates the store of its jobs, but none for a file that cannot be read.
#[test]
fn a_push_of_a_missing_file_creates_no_store() {
    let store = Store::sqlite();

    let error = in_folder(&store, "push --file nowhere.txt").fails(1);

    assert!(error.contains("the file nowhere.txt cannot be read"), "{error}");
    assert_eq!(files(&store), [""; 0]);
}

/// An import creates the store of its jobs, but none for a file that is no export.
#[test]
fn an_import_of_another_file_creates_no_store() {
    let store = Store::sqlite();
    std::fs::write(store.file("notes.txt"), "buy milk\n").unwrap();

    let error = in_folder(&store, "import notes.txt").fails(1);

    assert!(error.contains("its first line is not that of an export"), "{error}");
    assert_eq!(files(&store), ["notes.txt"]);
}
