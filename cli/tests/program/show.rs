//! `relq show`: one job, in whatever state it is.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

fn shown(store: &Store, id: &str) -> Value {
    store.relq(&format!("show --json {id}")).json()
}

on_each_store! {
    fn a_job_is_shown_with_all_that_is_stored_of_it(store) {
        store.push("--id a first");
        store.push(
            "--id b --after a --delay 5m --unique k --header tenant=acme --priority 7 \
             --lease 40s --keep-result 2h --max-attempts 3 second",
        );

        let leader = shown(store, "a");
        let held = shown(store, "b");

        assert_eq!((&leader["state"], &leader["followers"]), (&json!("ready"), &json!(["b"])));
        let fields = [
            ("id", json!("b")),
            ("state", json!("scheduled")),
            ("after", json!("a")),
            ("after_delay_ms", json!(300_000)),
            ("unique", json!("k")),
            ("headers", json!({"tenant": "acme"})),
            ("priority", json!(7)),
            ("lease_ms", json!(40_000)),
            ("keep_result_ms", json!(7_200_000)),
            ("attempt", json!(0)),
            ("max_attempts", json!(3)),
            ("payload", json!("second")),
            ("followers", json!([])),
        ];
        for (name, value) in fields {
            assert_eq!(held[name], value, "{name}: {held}");
        }
        let text = store.relq("show b").ok();
        let properties = ["id          b", "after       a", "delay       5m", "unique      k"];
        let others = ["header      tenant=acme", "lease       40s", "payload     second"];
        for line in properties.into_iter().chain(others) {
            assert!(text.lines().any(|it| it == line), "no {line:?} in {text}");
        }
        let text = store.relq("show a").ok();
        assert!(text.contains("followers   b"), "{text}");
    }

    /// R30: a page of held jobs may have them in another order.
    fn followers_are_shown_in_the_order_of_their_pushes(store) {
        store.push("--id leader x");
        for id in ["b", "c", "a"] {
            store.push(&format!("--id {id} --after leader y"));
        }

        let text = store.relq("show leader").ok();

        assert!(text.lines().any(|line| line == "followers   b, c, a"), "{text}");
        assert_eq!(shown(store, "leader")["followers"], json!(["b", "c", "a"]));
    }

    fn a_failed_and_a_dead_job_are_shown_with_their_errors(store) {
        store.push("--id dead --max-attempts 1 x");
        store.push("--id again y");
        store.relq_with(&["work", "--until-empty", "--retry", "1h..1h", "--", "sh", "-c", "echo broken >&2; exit 9"])
            .fails(4);

        let dead = shown(store, "dead");
        let again = shown(store, "again");

        assert_eq!((&dead["state"], &again["state"]), (&json!("dead"), &json!("scheduled")));
        assert!(dead["since_ms"].is_i64() && again["due_ms"].is_i64());
        assert!(again["last_error"].as_str().unwrap().contains("broken"), "{again}");
        assert_eq!(again["attempt"], json!(1));
        let text = store.relq("show dead").ok();
        assert!(text.contains("broken") && text.contains("attempt     1 of 1"), "{text}");
    }

    fn a_leased_job_is_shown_with_its_worker(store) {
        store.push("--id held x");
        let mut worker = store.relq_with(&["work", "--", "sleep", "1000"]).start();
        wait_until("the job is leased", || store.count("default", "leased") == 1);

        let job = shown(store, "held");

        assert_eq!(job["state"], json!("leased"));
        assert_eq!(job["pid"], json!(worker.child.id()));
        assert!(job["until_ms"].as_i64() > job["since_ms"].as_i64(), "{job}");
        let text = store.relq("show held").ok();
        assert!(text.contains(&format!("pid         {}", worker.child.id())), "{text}");
        worker.stop_hard();
    }

    /// A job that has ended is remembered, and one that never was is not found.
    fn an_ended_job_says_how_it_ended_and_an_unknown_one_fails(store) {
        store.push("--id done --keep-result 1h x");
        store.relq("work --until-empty -- true").ok();
        store.push("--id gone --keep-result 1h x");
        store.relq("cancel gone").ok();

        let done = shown(store, "done");

        assert_eq!((&done["state"], &done["was_done"]), (&json!("ended"), &json!(true)));
        assert!(done["remembered_until_ms"].is_i64(), "{done}");
        assert_eq!(shown(store, "gone")["was_done"], json!(false));
        assert!(store.relq("show done").ok().contains("done is done; its id"));
        let text = store.relq("show gone").ok();
        assert!(text.contains("gone has ended without being done; its id"), "{text}");
        let error = store.relq("show never").fails(1);
        assert!(error.contains("no job never is stored in the queue default"), "{error}");
    }
}

/// A ready job on Redis has no index: it is found by a search, far from both ends.
#[test]
fn a_ready_job_without_an_index_is_searched_for() {
    let lines: String = (0..2000).map(|number| format!("{number}\n")).collect();
    for store in [
        Store::redis(),
        Store::on("circular", relq_conformance::server::Server::start()),
    ] {
        store.relq("push --file - --quiet").input(lines.clone()).ok();
        store.push("--id middle here");
        store.relq("push --file - --quiet").input(lines.clone()).ok();

        let job = shown(&store, "middle");

        assert_eq!((&job["state"], &job["payload"]), (&json!("ready"), &json!("here")));
        store.relq("show elsewhere").fails(1);
    }
}

/// The jobs of all states are searched on a backend without an index.
#[test]
fn a_job_of_each_state_is_found_without_an_index() {
    for backend in ["circular", "keyspace", "processing-list"] {
        let store = Store::on_tcp(backend);
        store.push("--id dead --max-attempts 1 x");
        store.relq("work --until-empty -- false").fails(3);
        store.push("--id leased x");
        let mut worker = store.relq_with(&["work", "--", "sleep", "1000"]).start();
        wait_until("the job is leased", || store.count("default", "leased") == 1);
        store.relq("pause").ok();
        store.push("--id scheduled --delay 1h x");
        store.push("--id ready x");

        for state in ["dead", "leased", "scheduled", "ready"] {
            let job = shown(&store, state);

            assert_eq!(job["state"], json!(state), "{backend}: {job}");
        }
        worker.stop_hard();
    }
}

/// Ctrl-C ends a search, which says how many jobs it has looked at.
#[test]
fn a_signal_ends_the_search() {
    let mut store = Store::redis();
    store.push("first");
    // In steps, so that a busy machine answers each of them in time.
    let fill = b"for i = 1, 5000 do redis.call('LPUSH', KEYS[1], i) end";
    for _ in 0..20 {
        store.server().command(&[b"EVAL", fill, b"1", b"default"]);
    }
    let mut search = store.relq("show nowhere").start();
    wait_until("pages are read", || {
        let calls = store.server().command(&[b"INFO", b"commandstats"]);
        let calls = String::from_utf8(calls).unwrap();
        let pages =
            calls.lines().find_map(|line| line.strip_prefix("cmdstat_lrange:calls="));
        let pages = pages.and_then(|it| it.split(',').next()?.parse().ok());
        pages.is_some_and(|pages: u32| pages >= 5)
    });
    search.signal(Signal::INT);

    let ended = search.end();

    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let looked_at = ended.err.split("among the ").nth(1).unwrap();
    let looked_at: u32 = looked_at.split(' ').next().unwrap().parse().unwrap();
    assert!((1..100_001).contains(&looked_at), "{}", ended.err);
    assert!(ended.err.contains("stopped by a signal"), "{}", ended.err);
}
