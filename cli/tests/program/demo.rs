//! `relq demo` kills its workers and loses no job.

use std::fs;

use serde_json::json;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

on_each_store! {
    fn the_demo_loses_nothing_and_leaves_nothing(store) {
        let report = store.relq("demo --jobs 2000 --workers 3 --json").json();
        assert_eq!(report["pushed"], 2000);
        assert_eq!(report["finished"], 2000);
        assert_eq!(report["lost"], 0);
        assert!(report["kills"].as_u64() > Some(0), "{report}");
        assert!(report["repeated"].is_u64() && report["seconds"].is_f64(), "{report}");
        assert_eq!(report["problems"].as_array().map(Vec::len), Some(0));
    }

    /// R1, R9: workers on two queues are killed, and no job of either is lost.
    fn the_demo_of_two_queues_loses_nothing(store) {
        let line = "demo --queues 2 --jobs 1500 --workers 3 --json";
        let report = store.relq(line).json();
        assert_eq!((&report["finished"], &report["lost"]), (&json!(1500), &json!(0)));
        assert!(report["kills"].as_u64() > Some(0), "{report}");
        assert_eq!(report["problems"], json!([]));
    }
}

#[test]
fn the_demo_needs_nothing_but_itself() {
    let store = Store::sqlite();
    let temporary = store.file("tmp");
    fs::create_dir(&temporary).unwrap();
    let demo = store.relq("demo --jobs 300").no_env("RELQ_URL");
    let out = demo.env("TMPDIR", temporary.to_str().unwrap()).ok();
    let figure = |name: &str| out.lines().find(|line| line.starts_with(name)).unwrap();
    assert_eq!(figure("pushed").split_whitespace().nth(1), Some("300"));
    assert_eq!(figure("lost").split_whitespace().nth(1), Some("0"));
    assert!(
        out.contains("run more than once") && out.contains("jobs a second"),
        "{out}"
    );
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "it cleans up");
}

#[test]
fn the_demo_leaves_no_key_on_the_server() {
    let mut store = Store::redis();
    store.relq("demo --jobs 300").ok();
    assert_eq!(store.server().command(&[b"DBSIZE"]), b":0\r\n");
}

/// B5: each of the two batches completes once, however many workers are killed.
fn the_demo_of_batches_completes_each_once(store: &Store) {
    let report = store.relq("demo --batches --jobs 600 --workers 3 --json").json();
    assert_eq!((&report["finished"], &report["lost"]), (&json!(600), &json!(0)));
    assert_eq!(report["problems"], json!([]));
    let batches = report["batches"].as_array().unwrap();
    let of = |at: usize, figure: &str| batches[at][figure].clone();
    assert_eq!((of(0, "id"), of(0, "done")), (json!("large"), json!(480)));
    assert_eq!((of(1, "id"), of(1, "done")), (json!("small"), json!(120)));
}

#[test]
fn the_demo_of_batches_on_sqlite() {
    the_demo_of_batches_completes_each_once(&Store::sqlite());
}

#[test]
fn the_demo_of_batches_on_stream() {
    let mut store = Store::stream();
    the_demo_of_batches_completes_each_once(&store);
    assert_eq!(store.server().command(&[b"DBSIZE"]), b":0\r\n");
}

/// A demo whose terminal closes removes its queue and its files.
#[test]
fn a_demo_that_is_hung_up_cleans_up() {
    let mut store = Store::redis();
    let mut demo = store.relq("demo --jobs 100000").start();
    wait_until("its jobs are there", || {
        store.server().command(&[b"DBSIZE"]) != b":0\r\n"
    });
    demo.signal(rustix::process::Signal::HUP);
    let ended = demo.end();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("stopped by a signal"), "{}", ended.err);
    assert_eq!(store.server().command(&[b"DBSIZE"]), b":0\r\n");
}

/// When the demo is killed, its workers end.
#[test]
fn no_worker_outlives_the_demo() {
    let mut store = Store::redis();
    // A killed demo cannot remove its temporary folder. So the test lets the demo
    // create it in the test's own folder, which is removed at the end.
    let folder = store.folder.path().to_str().unwrap().to_owned();
    let mut demo = store.relq("demo --jobs 100000").env("TMPDIR", &folder).start();
    let clients = |store: &mut Store| {
        let list = store.server().command(&[b"CLIENT", b"LIST"]);
        String::from_utf8_lossy(&list).matches("id=").count()
    };
    wait_until("the workers are there", || clients(&mut store) > 4);
    demo.kill();
    wait_until("the workers are gone", || clients(&mut store) <= 1);
}
