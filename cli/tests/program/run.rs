//! `relq run`: scheduled jobs run now.

use serde_json::json;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

on_each_store! {
    /// R32: the job is ready at once, and a worker runs it.
    fn a_delayed_job_runs_now(store) {
        store.push("--id later --delay 1h x");
        store.push("--id stays --delay 1h y");

        assert_eq!(store.relq("run later").ok(), "later is ready now\n");

        assert_eq!(store.count("default", "ready"), 1);
        let ran = store.relq("work --until-empty -- echo {}").fails(4);
        assert!(!ran.contains("panicked"));
        assert_eq!(store.count("default", "finished"), 1);
        assert_eq!(store.relq("show --json stays").json()["state"], json!("scheduled"));
    }

    /// R32: a held job is not released, and the error names its leader.
    fn a_held_job_names_its_leader(store) {
        store.push("--id a x");
        store.push("--id b --after a y");

        let ended = store.relq("run b").run();

        assert_eq!(ended.code, Some(1));
        let text = String::from_utf8(ended.out).unwrap();
        assert_eq!(text, "b follows a, which is not done: it cannot run before\n");
        assert!(ended.err.contains("not made ready: 1 of 1 job"), "{}", ended.err);
        let rows = store.relq("run b --json").run().out;
        let rows: serde_json::Value = serde_json::from_slice(&rows).unwrap();
        assert_eq!((&rows[0]["ready"], &rows[0]["after"]), (&json!(false), &json!("a")));
        assert_eq!(store.relq("show --json b").json()["after"], json!("a"));
    }

    fn each_other_state_is_said(store) {
        store.push("--id dead --max-attempts 1 x");
        store.relq("work --until-empty -- false").fails(3);
        store.push("--id done --keep-result 1h x");
        store.relq("work --until-empty -- true").ok();
        store.push("--id held x");
        let mut worker = store.relq_with(&["work", "--", "sleep", "1000"]).start();
        wait_until("the job is leased", || store.count("default", "leased") == 1);
        store.relq("pause").ok();
        store.push("--id ready --priority 9 x");
        store.push("--id later --delay 1h x");

        let ended = store.relq("run dead done held ready never later").run();

        let text = String::from_utf8(ended.out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "dead is dead: make it ready with `relq dead retry`");
        assert_eq!(lines[1], "done is done");
        assert_eq!(lines[2], "held is leased: a worker runs it");
        assert_eq!(lines[3], "ready is ready already");
        assert!(lines[4].contains("not known"), "{text}");
        assert_eq!(lines[5], "later is ready now");
        assert!(ended.err.contains("5 of 6 jobs"), "{}", ended.err);
        assert_eq!(ended.code, Some(1));
        store.relq("cancel later").ok();
        let ended = store.relq("run later").run();
        let text = String::from_utf8(ended.out).unwrap();
        assert_eq!(text, "later has ended without being done\n");
        worker.stop_hard();
    }
}

/// The jobs that were run before an error are ready, so their answers are printed.
#[test]
fn an_error_hides_no_job_that_was_run_before() {
    let mut store = Store::redis();
    store.push("--id first --delay 1h x");
    store.push("--id last --delay 1h x");
    // Only the look at a job that is not scheduled reads this key, and fails.
    store.server().command(&[b"SET", b"{default}:followers", b"another client's"]);

    let ended = store.relq("run first never last").run();

    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let out = String::from_utf8(ended.out).unwrap();
    assert_eq!(out, "first is ready now\n", "{}", ended.err);
    assert!(ended.err.contains("WRONGTYPE"), "{}", ended.err);
    assert!(ended.err.contains("this is the answer for never"), "{}", ended.err);
}

#[test]
fn a_backend_that_cannot_run_a_job_early_says_so() {
    let store = Store::on("circular", relq_conformance::server::Server::start());
    store.push("--id x a");
    let error = store.relq("run x").fails(2);
    assert!(error.contains("the backend circular cannot run a job"), "{error}");
}
