//! The operator's commands.

use serde_json::json;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// A queue with one dead job.
fn bury(store: &Store, payload: &str) -> String {
    let id = store.push(&format!("{payload} --max-attempts 1"))[0].clone();
    store.relq("work --exec false --until-empty").fails(3);
    id
}

on_each_store! {
    fn stats_have_every_figure(store) {
        store.push("a b");
        store.push("later --delay 1h");
        let stats = store.relq("stats --json").json();
        assert_eq!(stats["queue"], "default");
        assert_eq!(stats["ready"], 2);
        assert_eq!(stats["scheduled"], 1);
        assert_eq!(stats["paused"], false);
        for figure in ["leased", "overdue", "dead", "finished", "discarded", "cancelled"] {
            assert_eq!(stats[figure], 0, "{figure}");
        }
        let due = stats["next_due_in_ms"].as_u64().unwrap();
        assert!((3_500_000..=3_600_000).contains(&due), "{due}");

        let text = store.relq("stats").ok();
        assert!(text.starts_with("queue      default\nready      2\n"), "{text}");
    }

    /// The output shows which worker holds a job, by host and pid, and since when.
    fn peek_shows_who_holds_a_job(store) {
        let id = store.push("job").remove(0);
        let worker = store.relq("work --exec sleep 1000").start();
        wait_until("it is leased", || store.count("default", "leased") == 1);
        let job = &store.relq("peek --state leased --json").json()[0];
        assert_eq!(job["id"], id);
        assert_eq!(job["pid"], worker.child.id());
        assert!(!job["host"].as_str().unwrap().is_empty());
        let (since, until) = (job["since_ms"].as_i64(), job["until_ms"].as_i64());
        assert!(until > since && since > Some(0));

        let text = store.relq("peek --state leased").ok();
        assert!(text.contains(&format!("pid {}, until 20", worker.child.id())), "{text}");
        assert!(text.starts_with("ID") && text.contains("SINCE"), "{text}");
        // The worker's command must not outlive the test.
        let mut worker = worker;
        worker.stop_hard();
    }

    fn peek_stops_at_its_limit_and_touches_nothing(store) {
        let lines: String = (0..250).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --file -").input(lines).ok();
        let payloads = |limit| {
            let jobs = store.relq(&format!("peek --json --limit {limit}")).json();
            jobs.as_array().unwrap().len()
        };
        assert_eq!((payloads(1), payloads(100), payloads(999)), (1, 100, 250));
        assert_eq!(store.relq("peek").ok().lines().count(), 21);
        assert_eq!(store.count("default", "ready"), 250);
        assert_eq!(store.relq("peek --state dead --json").json(), json!([]));
    }

    fn a_reader_that_goes_away_is_no_error(store) {
        let lines: String = (0..5000).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --file -").input(lines).ok();
        for line in ["peek --limit 5000", "peek --json --limit 5000", "stats", "--help"] {
            let ended = store.relq(line).start_without_output().end();
            assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{line}");
        }
    }

    fn a_payload_is_shown_without_steering_the_terminal(store) {
        store.relq("push --file - --null").input(b"a\x1b[2J\nb").ok();
        let text = store.relq("peek").ok();
        assert!(text.contains("a\\u{1b}[2J\\nb"), "{text}");
    }

    fn dead_jobs_are_redriven(store) {
        let (first, second) = (bury(store, "a"), bury(store, "b"));
        let redriven = store.relq_with(&["dead", "redrive", "--json", &first]).json();
        assert_eq!(redriven, json!({"moved": 1, "duplicates": 0}));
        assert_eq!(store.relq("dead list --json").json()[0]["id"], second);
        assert_eq!(store.relq("peek --json").json()[0]["attempt"], 0);
        assert_eq!(store.relq("dead redrive --all").ok(), "1 ready again\n");
        assert_eq!(store.count("default", "ready"), 2);
    }

    fn dead_jobs_are_purged(store) {
        let first = bury(store, "a");
        bury(store, "b");
        bury(store, "c");
        let error = store.relq("dead purge").fails(2);
        assert!(error.contains("--all"), "{error}");
        let purged = store.relq_with(&["dead", "purge", "--json", &first]).json();
        assert_eq!(purged, json!({"purged": 1}));
        let error = store.relq_with(&["dead", "purge", &first]).fails(1);
        assert!(error.contains("name no dead job"), "{error}");
        assert_eq!(store.relq("dead purge --all").ok(), "2 removed\n");
        assert_eq!(store.count("default", "dead"), 0);
    }

    fn jobs_are_cancelled_by_id(store) {
        let id = store.push("job").remove(0);
        let out = store.relq_with(&["cancel", &id, "--json"]).json();
        assert_eq!(out, json!([{"id": id, "cancelled": true, "was": "ready"}]));
        let ended = store.relq_with(&["cancel", &id]).run();
        assert_eq!(ended.code, Some(1));
        assert!(ended.err.contains("no scheduled, ready or leased job"), "{}", ended.err);
        assert_eq!(store.count("default", "cancelled"), 1);
    }

    fn a_paused_queue_says_so(store) {
        store.create();
        assert_eq!(store.relq("pause --json").json(), json!({"paused": true}));
        assert_eq!(store.relq("stats --json").json()["paused"], true);
        assert!(store.relq("stats").ok().starts_with("queue      default (paused)\n"));
        assert_eq!(store.relq("resume --json").json(), json!({"paused": false}));
        assert_eq!(store.relq("stats --json").json()["paused"], false);
    }

    /// R9: an operator can recover jobs by hand when no worker runs.
    fn recover_makes_jobs_of_dead_workers_ready(store) {
        store.push("job");
        let line = ["work", "--lease", "200ms", "--exec", "sh", "-c", "kill -9 $PPID"];
        store.relq_with(&line).start().end();
        let mut recovered = json!(null);
        wait_until("the lease ends", || {
            recovered = store.relq("recover --json").json();
            recovered["requeued"] == 1
        });
        assert_eq!(recovered, json!({"requeued": 1, "buried": 0, "promoted": 0}));
        assert_eq!(store.relq("recover").ok(), "requeued  0\nburied    0\npromoted  0\n");
    }

    fn purge_asks_for_a_yes(store) {
        store.push("a b");
        let error = store.relq("purge").fails(2);
        assert!(error.contains("add --yes"), "{error}");
        assert_eq!(store.count("default", "ready"), 2);
        assert_eq!(store.relq("purge --yes --json").json(), json!({"purged": 2}));
        assert_eq!(store.count("default", "ready"), 0);
    }

    fn audit_finds_nothing_wrong(store) {
        store.push("a b c");
        let audit = store.relq("audit --json").json();
        assert_eq!(audit, json!({"jobs": 3, "problems": []}));
        assert_eq!(store.relq("audit").ok(), "3 jobs looked at, 0 problems\n");
    }
}

/// R23: audit finds a misplaced job, and the exit code reports it.
#[test]
fn audit_finds_what_is_wrong() {
    let mut store = Store::redis();
    store.push("job");
    let mut worker = store.relq("work --exec sleep 1000").start();
    wait_until("it is leased", || store.count("default", "leased") == 1);
    worker.signal(rustix::process::Signal::STOP);
    // Another client deletes the leases, so the job would never come back.
    store.server().command(&[b"DEL", b"{default}:leased"]);
    let ended = store.relq("audit --json").run();
    assert_eq!(ended.code, Some(1));
    let audit: serde_json::Value = serde_json::from_slice(&ended.out).unwrap();
    assert!(!audit["problems"].as_array().unwrap().is_empty());
    worker.signal(rustix::process::Signal::CONT);
    worker.stop_hard();
}
