//! `relq workers`: the workers that run, and what they hold.

use std::{collections::BTreeSet, num::NonZeroU32, time::Duration};

use relq::{
    ClaimRequest, QueueName, ReliableQueueExt as _, WorkerId, operator::WorkerReport,
};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    on_each_store,
    relq::{Running, Store, wait_until},
};

fn workers(store: &Store) -> Vec<Value> {
    store.relq("workers --json").json().as_array().unwrap().clone()
}

/// Starts a worker that holds its jobs, and waits until it is listed.
fn start(store: &Store, slots: &str) -> Running {
    let line = ["work", "-c", slots, "--", "sleep", "1000"];
    let worker = store.relq_with(&line).start();
    let pid = json!(worker.child.id());
    wait_until("the worker is listed", || {
        workers(store).iter().any(|row| row["pid"] == pid && row["reported"] == true)
    });
    worker
}

/// Claims a job as a worker that never reports.
fn claim_as(store: &Store, name: &str) {
    Runtime::new().unwrap().block_on(async {
        let queue = QueueName::new("default").unwrap();
        let queue = relq::connect(&store.url, &queue).await.unwrap();
        let ask =
            ClaimRequest::new(WorkerId::new(name).unwrap(), Duration::from_secs(600));
        queue.claim_one(&ask).await.unwrap().unwrap();
    });
}

/// Reports that workers with these names and three slots each run.
fn report_as(store: &Store, names: &BTreeSet<String>) {
    Runtime::new().unwrap().block_on(async {
        let queue = QueueName::new("default").unwrap();
        let queue = relq::connect(&store.url, &queue).await.unwrap();
        let slots = NonZeroU32::new(3).unwrap();
        for name in names {
            let report =
                WorkerReport::new(WorkerId::new(name.as_str()).unwrap(), slots);
            queue.report_worker(&report).await.unwrap();
        }
    });
}

on_each_store! {
    /// R33: a worker that runs is listed with its slots and its jobs, and a worker that
    /// stopped is not.
    fn running_workers_are_listed_with_what_they_hold(store) {
        store.push("--id a x");
        store.push("--id b x");
        let mut busy = start(store, "3");
        wait_until("both jobs are leased", || store.count("default", "leased") == 2);
        let mut idle = start(store, "5");

        let rows = workers(store);

        assert_eq!(rows.len(), 2, "{rows:?}");
        let of = |pid: u32| rows.iter().find(|row| row["pid"] == json!(pid)).unwrap();
        let (busy_row, idle_row) = (of(busy.child.id()), of(idle.child.id()));
        assert_eq!((&busy_row["slots"], &idle_row["slots"]), (&json!(3), &json!(5)));
        let mut ids: Vec<_> = busy_row["held"].as_array().unwrap().iter()
            .map(|job| job["id"].as_str().unwrap())
            .collect();
        ids.sort_unstable();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(idle_row["held"], json!([]));
        assert!(busy_row["host"].is_string() && busy_row["since_ms"].is_i64());

        let text = store.relq("workers --jobs").ok();
        assert!(text.starts_with("HOST"), "{text}");
        assert!(text.contains("  a b\n") || text.contains("  b a\n"), "{text}");
        assert!(!store.relq("workers").ok().contains("  a b\n"));

        idle.stop_hard();
        assert_eq!(workers(store).len(), 1, "a worker that ended by itself is not listed");
        busy.stop_hard();
        assert_eq!(store.relq("workers").ok(), "");
    }

    /// R33: a worker that holds a job and never reported is shown as such.
    fn a_worker_that_holds_a_job_and_never_reported_is_listed(store) {
        store.push("--id a x");
        claim_as(store, "foreign");

        let rows = workers(store);

        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!((&rows[0]["worker"], &rows[0]["reported"]), (&json!("foreign"), &json!(false)));
        assert_eq!((&rows[0]["slots"], &rows[0]["since_ms"]), (&json!(null), &json!(null)));
        assert_eq!(rows[0]["held"][0]["id"], json!("a"));
        assert!(store.relq("workers").ok().contains("not reported"));
    }

    /// R33: there may be more workers than one call to the store reads.
    fn each_of_many_workers_is_listed(store) {
        store.create();
        let names: BTreeSet<_> = (0..1_100).map(|number| format!("w{number}")).collect();
        report_as(store, &names);

        let rows = workers(store);

        let listed: Vec<_> = rows.iter().map(|row| row["worker"].as_str().unwrap()).collect();
        assert_eq!(listed, names.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(rows.iter().all(|row| row["reported"] == true && row["slots"] == 3));
    }
}

#[test]
fn a_backend_without_reports_lists_the_holders_and_says_so() {
    let store = Store::on("circular", relq_conformance::server::Server::start());
    store.push("--id a x");
    claim_as(&store, "w");

    let ended = store.relq("workers").run();

    assert_eq!(ended.code, Some(0));
    assert!(String::from_utf8(ended.out).unwrap().contains("not reported"));
    assert!(
        ended.err.contains("circular stores no reports of workers"),
        "{}",
        ended.err
    );
}
