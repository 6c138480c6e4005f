//! The commands of an operator: stats, peek, cancel, pause, recover, audit and others.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use relq::{ClaimRequest, QueueName, WorkerId};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// How much a time of the store may differ from that of the test. A client on Redis
/// takes the server's time when it opens a connection.
const CLOCK_TOLERANCE_MS: i64 = 5000;

fn now_ms() -> i64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(since_1970.as_millis()).unwrap()
}

/// Pushes a job and lets its only attempt fail. Returns the id of the dead job.
fn bury(store: &Store, payload: &str) -> String {
    let id = store.push(&format!("{payload} --max-attempts 1"))[0].clone();
    store.relq("work --exec false --until-empty").fails(3);
    id
}

/// Claims so many jobs as a worker that does not settle them.
fn lease(store: &Store, jobs: u32, lease: Duration) {
    Runtime::new().unwrap().block_on(async {
        let queue = QueueName::new("default").unwrap();
        let queue = relq::connect(&store.url, &queue).await.unwrap();
        let most = NonZeroU32::new(jobs).unwrap();
        let ask = ClaimRequest::new(WorkerId::new("w").unwrap(), lease).max(most);
        assert_eq!(queue.claim(&ask).await.unwrap().len(), jobs as usize);
    });
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
        assert!(text.starts_with("queue      default\nready      2 (oldest for "), "{text}");
        assert!(text.contains("(next in 59m "), "{text}");
    }

    /// R27: the age counts from the push.
    fn stats_tell_the_age_of_the_oldest_ready_job(store) {
        store.push("first --delay 1h");
        assert_eq!(store.relq("stats --json").json()["oldest_ready_age_ms"], json!(null));
        assert!(store.relq("stats").ok().contains("ready      0\n"));
        store.push("second");
        let age = || {
            store.relq("stats --json").json()["oldest_ready_age_ms"].as_u64().unwrap()
        };
        let before = age();
        assert!(before < 60_000, "{before}");
        wait_until("it is older", || age() > before);
    }

    /// R27: in each state.
    fn a_job_is_shown_with_the_time_of_its_push(store) {
        let before = now_ms();
        bury(store, "dead");
        store.push("ready");
        store.push("scheduled --delay 1h");
        let expected = before - CLOCK_TOLERANCE_MS..=now_ms() + CLOCK_TOLERANCE_MS;
        for line in ["peek", "peek --state scheduled", "dead list"] {
            let job = &store.relq(&format!("{line} --json")).json()[0];
            let pushed = job["enqueued_at_ms"].as_i64().unwrap();
            assert!(expected.contains(&pushed), "{line}: {pushed} is not in {expected:?}");
        }
        let text = store.relq("peek").ok();
        assert!(text.contains("PRIORITY  PUSHED") && text.contains("5         20"), "{text}");
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
        // End the worker here, so that its command does not outlive the test.
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

    /// A command that failed says so, even if nobody reads its output.
    fn a_reader_that_goes_away_hides_no_failure(store) {
        store.create();
        for line in [
            "cancel unknown",
            "cancel unknown --json",
            "dead redrive unknown",
            "dead purge unknown --json",
        ] {
            let ended = store.relq(line).start_without_output().end();
            assert_eq!(ended.code, Some(1), "{line}: {}", ended.err);
            assert!(ended.err.contains("of these ids name no"), "{line}: {}", ended.err);
        }
    }

    fn a_payload_is_shown_without_steering_the_terminal(store) {
        store.relq("push --file - --null").input(b"a\x1b[2J\nb").ok();
        let text = store.relq("peek").ok();
        assert!(text.contains("a\\u{1b}[2J\\nb"), "{text:?}");
    }

    fn dead_jobs_are_redriven(store) {
        let (first, second) = (bury(store, "a"), bury(store, "b"));
        let redriven = store.relq_with(&["dead", "redrive", "--json", &first]).json();
        assert_eq!(redriven, json!({"moved": 1, "duplicates": 0}));
        assert_eq!(store.relq("dead list --json").json()[0]["id"], second);
        assert_eq!(store.relq("peek --json").json()[0]["attempt"], 0);
        assert_eq!(store.relq("dead retry --all").ok(), "1 ready again\n");
        assert_eq!(store.relq("list --json").json().as_array().map(Vec::len), Some(2));
    }

    fn an_id_that_is_given_twice_counts_once(store) {
        let id = bury(store, "a");
        let out = store.relq_with(&["dead", "redrive", &id, &id]).ok();
        assert_eq!(out, "1 ready again\n");
    }

    /// R16: a dead job stays dead while another job holds its unique key.
    fn a_redrive_says_which_jobs_stay_dead(store) {
        let id = bury(store, "a --unique key");
        store.push("b --unique key");
        let words = "0 ready again\n1 still dead, because another job holds their unique key\n";
        let ended = store.relq_with(&["dead", "redrive", &id]).run();
        assert_eq!(String::from_utf8(ended.out).unwrap(), words);
        assert_eq!(ended.err, "relq: not made ready: 1 job\n");
        assert_eq!(ended.code, Some(1));
        assert_eq!(store.relq("dead redrive --all").ok(), words);
        assert_eq!(store.count("default", "dead"), 1);
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

    fn an_unknown_id_does_not_keep_others_from_being_cancelled(store) {
        let id = store.push("job").remove(0);
        let ended = store.relq_with(&["cancel", "unknown", &id]).run();
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        assert_eq!(out, format!("unknown not found\n{id} cancelled, was ready\n"));
        assert_eq!(store.count("default", "cancelled"), 1);
        let rows = store.relq("cancel unknown --json").run().out;
        let rows: serde_json::Value = serde_json::from_slice(&rows).unwrap();
        assert_eq!(rows, json!([{"id": "unknown", "cancelled": false, "was": null}]));
    }

    fn stats_as_text_have_the_same_figures(store) {
        bury(store, "a");
        store.push("b c");
        store.relq("work --exec true --until-empty").ok();
        let ids = store.push("d e f --delay 1h");
        store.relq_with(&["cancel", &ids[0], &ids[1], &ids[2]]).ok();
        store.push("g h i j");
        let text = store.relq("stats").ok();
        let (before, age) = text.split_once(" (oldest for ").unwrap();
        let (age, after) = age.split_once(")\n").unwrap();
        assert!(age.ends_with(['s', 'm']), "{text}");
        assert_eq!(
            format!("{before}\n{after}"),
            "queue      default\nready      4\nscheduled  0\nleased     0\ndead       1\n\
             finished   2\ndiscarded  0\ncancelled  3\n",
        );
    }

    fn peek_says_when_there_are_more_jobs(store) {
        store.push("a b c");
        let said = |limit| store.relq(&format!("peek --limit {limit}")).run().err;
        assert_eq!(said(2), "there are more: --limit 20 shows more\n");
        assert_eq!(said(3), "");
        assert_eq!(said(4), "");
    }

    fn recover_takes_every_page(store) {
        let lines: String = (0..1100).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --delay 1ms --file -").input(lines).ok();
        let recovered = store.relq("recover --json").json();
        assert_eq!(recovered, json!({"requeued": 0, "buried": 0, "promoted": 1100}));
        assert_eq!(store.count("default", "ready"), 1100);
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

    /// R9, R11, R14: what becomes of the jobs of a dead worker is counted for each kind.
    fn recover_counts_what_becomes_of_each_job(store) {
        store.push("--max-attempts 2 again");
        store.push("--max-attempts 1 last last");
        lease(store, 3, Duration::from_millis(20));
        store.push("--delay 1ms due due due due");
        wait_until("all leases have expired and all jobs are due", || {
            let stats = store.relq("stats --json").json();
            stats["overdue"] == 3 && stats["next_due_in_ms"] == 0
        });

        let recovered = store.relq("recover --json").json();

        assert_eq!(recovered, json!({"requeued": 1, "buried": 2, "promoted": 4}));
        assert_eq!((store.count("default", "ready"), store.count("default", "dead")), (5, 2));
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

/// R23: the audit finds a job in the wrong place, and exits with 1.
#[test]
fn audit_finds_what_is_wrong() {
    let mut store = Store::redis();
    store.push("job");
    let mut worker = store.relq("work --exec sleep 1000").start();
    wait_until("it is leased", || store.count("default", "leased") == 1);
    worker.signal(rustix::process::Signal::STOP);
    // Delete the lease ends as another client could. Without them the job would never
    // be recovered.
    store.server().command(&[b"DEL", b"{default}:leased"]);
    let ended = store.relq("audit --json").run();
    assert_eq!(ended.code, Some(1));
    let audit: serde_json::Value = serde_json::from_slice(&ended.out).unwrap();
    assert!(!audit["problems"].as_array().unwrap().is_empty());
    let unread = store.relq("audit").start_without_output().end();
    assert_eq!(unread.code, Some(1), "the exit code when nobody reads the problems");
    worker.signal(rustix::process::Signal::CONT);
    worker.stop_hard();
}

#[test]
fn stats_by_part_have_the_figures_of_each() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    for job in 0..4 {
        store.push(&job.to_string());
    }
    let parts = store.relq("stats --by-part --json").json();
    let counts: Vec<_> = parts
        .as_array()
        .unwrap()
        .iter()
        .map(|part| (part["queue"].as_str().unwrap(), part["ready"].as_u64().unwrap()))
        .collect();
    let names: Vec<_> = counts.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["default", "default:1", "default:2"]);
    assert_eq!(counts.iter().map(|(_, ready)| ready).sum::<u64>(), 4, "{counts:?}");

    let text = store.relq("stats --by-part").ok();
    let mut lines = text.lines();
    assert!(lines.next().unwrap().starts_with("PART"), "{text}");
    for (line, (name, ready)) in lines.zip(&counts) {
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..2], [*name, &ready.to_string()], "{text}");
        assert_eq!(
            words[2].ends_with('s'),
            *ready > 0,
            "the age of the oldest: {text}"
        );
    }
}

/// The jobs that were cancelled before an error are gone, so their ids are printed.
#[test]
fn an_error_hides_no_job_that_was_cancelled_before() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    let ids: Vec<_> = (1..10).map(|number| format!("job-{number}")).collect();
    for id in &ids {
        store.push(&format!("--id {id} x"));
    }
    // The part can cancel nothing any more, because a key has another type.
    store.server().command(&[b"DEL", b"{default:1}:ids"]);
    store.server().command(&[b"SET", b"{default:1}:ids", b"another client's"]);

    let ended = store.relq(&format!("cancel {}", ids.join(" "))).run();

    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let out = String::from_utf8(ended.out).unwrap();
    let printed = out.lines().count();
    assert!((1..ids.len()).contains(&printed), "{out}{}", ended.err);
    for (line, id) in out.lines().zip(&ids) {
        assert_eq!(line, format!("{id} cancelled, was ready"));
    }
    let told = format!("this is the answer for {}", ids[printed]);
    assert!(
        ended.err.contains("WRONGTYPE") && ended.err.contains(&told),
        "{}",
        ended.err
    );
}
