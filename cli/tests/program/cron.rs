//! `relq cron`: schedules that are stored, listed, run and removed.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// Stores a schedule, and returns the output.
fn add(store: &Store, arguments: &[&str]) -> String {
    store.relq_with(&[&["cron", "add"], arguments].concat()).ok()
}

fn list(store: &Store) -> Value {
    store.relq("cron list --json").json()
}

fn ready(store: &Store) -> u64 {
    store.count("default", "ready")
}

/// The moments of the ticks whose jobs are ready, in the order of their pushes.
fn ticks(store: &Store) -> Vec<String> {
    let jobs = store.relq("peek --json --limit 100").json();
    let tick =
        |job: &Value| job["headers"]["relq-scheduled-for"].as_str().unwrap().to_owned();
    jobs.as_array().unwrap().iter().map(tick).collect()
}

on_each_store! {
    fn a_schedule_is_stored_once_and_replaced(store) {
        let nightly = ["nightly", "0 3 * * *", "--zone", "Europe/Berlin", "report"];
        let out = add(store, &nightly);
        assert!(out.starts_with("nightly created, next tick 2"), "{out}");
        assert!(out.contains("T03:00:00+0"), "{out}");
        assert!(add(store, &nightly).starts_with("nightly unchanged"));

        let out = add(store, &["nightly", "--every", "1h", "report", "--json"]);

        let out: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&out["name"], &out["stored"]), (&json!("nightly"), &json!("replaced")));
        assert_eq!(out["next_tick_ms"].as_i64().unwrap() % 3_600_000, 0);
        assert_eq!(list(store).as_array().unwrap().len(), 1);
    }

    fn the_list_has_the_times_and_the_ticks_of_each_schedule(store) {
        add(store, &["poll", "--every", "5m", "--missed", "skip", "poll"]);
        add(store, &["a-report", "0 3 * * *", "--priority", "9", "--header", "kind=r", "x"]);

        let out = store.relq("cron list").ok();
        let lines: Vec<_> = out.lines().collect();
        assert!(lines[0].starts_with("NAME      TIMES          MISSED  LAST TICK"), "{out}");
        assert!(lines[1].starts_with("a-report  0 3 * * * UTC  last    2"), "{out}");
        assert!(lines[2].starts_with("poll      every 5m       skip    2"), "{out}");

        let json = list(store);
        assert_eq!(json[0]["name"], "a-report");
        assert_eq!(json[0]["error"], Value::Null);
        assert_eq!(json[0]["next_tick_ms"].as_i64().unwrap() % 86_400_000, 3 * 3_600_000);
        let job = json!({
            "payload": "x",
            "priority": 9,
            "max_attempts": 25,
            "headers": [["kind", "r"]],
        });
        assert_eq!(json[0]["definition"]["job"], job);
        assert_eq!(json[1]["definition"]["every_ms"], 300_000);
    }

    /// The jobs of a schedule can keep their results (R29).
    fn a_schedule_says_how_long_its_results_are_kept(store) {
        add(store, &["count", "--every", "1h", "--keep-result", "2h", "to be"]);

        let json = list(store);
        let job = &json[0]["definition"]["job"];
        assert_eq!(job["keep_result_ms"], 7_200_000, "{job}");
    }

    fn the_next_ticks_are_printed(store) {
        add(store, &["nightly", "30 2 * * *", "--zone", "America/New_York", "report"]);
        add(store, &["poll", "--every", "1h", "poll"]);

        let out = store.relq("cron next nightly --count 400").ok();
        assert_eq!(out.lines().count(), 400);
        // The clocks go forward once in this time: 02:30 is skipped that day.
        let moved = |line: &&str| line.ends_with("T03:00:00-04:00");
        assert!(out.lines().filter(moved).count() >= 1, "{out}");
        let ticks = |line: &&str| line.contains("T02:30:00-0");
        assert!(out.lines().filter(ticks).count() >= 398, "{out}");

        let json = store.relq("cron next poll --json").json();
        let json = json.as_array().unwrap();
        assert_eq!(json.len(), 5);
        let tick = |place: usize| json[place]["tick_ms"].as_i64().unwrap();
        assert_eq!(tick(4) - tick(0), 4 * 3_600_000);
        assert_eq!(json[0]["local"], Value::Null);
    }

    fn a_removed_schedule_is_gone(store) {
        add(store, &["poll", "--every", "5m", "poll"]);
        assert_eq!(store.relq("cron remove poll").ok(), "poll removed\n");
        assert_eq!(list(store), json!([]));
        for command in ["cron remove poll", "cron next poll"] {
            let error = store.relq(command).fails(1);
            assert!(error.contains("there is no schedule poll"), "{error}");
        }
    }

    /// R28: two schedulers push each tick once, and end at a signal.
    fn two_schedulers_push_each_tick_once(store) {
        add(store, &["poll", "--every", "1s", "--missed", "all", "poll"]);
        let mut running = [
            store.relq("cron run --look-every 500ms").start(),
            store.relq("cron run").start(),
        ];
        wait_until("five ticks are pushed", || ready(store) >= 5);
        for scheduler in &mut running {
            scheduler.signal(Signal::TERM);
            let ended = scheduler.end_by_itself();
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            assert!(ended.err.contains("ticks pushed"), "{}", ended.err);
        }

        let ticks = ticks(store);
        let seconds = |tick: &String| {
            let (minute, second) = (&tick[14..16], &tick[17..19]);
            minute.parse::<u32>().unwrap() * 60 + second.parse::<u32>().unwrap()
        };
        for pair in ticks.windows(2) {
            assert_eq!((seconds(&pair[0]) + 1) % 3600, seconds(&pair[1]), "{ticks:?}");
        }
    }

    fn a_worker_pushes_the_jobs_of_schedules_and_runs_them(store) {
        add(store, &["poll", "--every", "1s", "poll"]);
        let command = ["work", "--schedules", "--concurrency", "1", "--"];
        let echo = ["sh", "-c", "echo \"$RELQ_HEADERS\" >>ran"];
        let mut worker = store.relq_with(&[&command[..], &echo[..]].concat()).start();

        wait_until("two ticks have run", || {
            let ran = std::fs::read_to_string(store.file("ran")).unwrap_or_default();
            ran.lines().count() >= 2
        });
        worker.signal(Signal::TERM);
        assert_eq!(worker.end_by_itself().code, Some(0));

        let ran = std::fs::read_to_string(store.file("ran")).unwrap();
        assert!(ran.contains(r#""relq-schedule":"poll""#), "{ran}");
    }

    fn a_worker_pushes_the_jobs_of_the_schedules_of_each_of_its_queues(store) {
        for queue in ["first", "second"] {
            add(store, &["poll", "-q", queue, "--every", "1s", "poll"]);
        }
        let line = ["work", "--serve", "first", "--serve", "second", "--schedules",
            "--", "sh", "-c", "echo $RELQ_QUEUE >>ran"];
        let _worker = store.relq_with(&line).start();

        wait_until("a tick of each queue has run", || {
            let ran = std::fs::read_to_string(store.file("ran")).unwrap_or_default();
            ran.contains("first\n") && ran.contains("second\n")
        });
    }
}

#[test]
fn what_is_no_schedule_is_refused() {
    let store = Store::sqlite();
    for (arguments, why) in [
        (&["a", "0 3 * *", "x"][..], "cannot be read: it needs five fields"),
        (&["a", "", "x"], "and has 0"),
        (&["a", "61 3 * * *", "x"], "the minute is \"61\", and must be 0 to 59"),
        (&["a", "*/0 3 * * *", "x"], "the minute is \"*/0\", and must be 0 to 59"),
        (&["a", "0 3 * 13 *", "x"], "the month is \"13\", and must be 1 to 12"),
        (&["a", "0 3 * * mon-fry", "x"], "the day of the week is \"mon-fry\""),
        (&["a", "@dayly", "x"], "the names are @hourly, @daily"),
        (&["a", "0 0 30 2 *", "x"], "never ticks"),
        (&["a", "0 3 * * *", "x", "--zone", "Europe/Atlantis"], "no time zone"),
        (&["a", "x"], "in quotes"),
        (&["a", "0 3 * * *", "x", "--every", "5m"], "no cron expression"),
        (&["a", "x", "y", "z", "--every", "5m"], "no cron expression"),
        (&["a", "x", "--every", "5m", "--zone", "UTC"], "cannot be used with"),
        (&["a", "x", "--every", "10ms"], "shorter than a second"),
        (
            &["a", "x", "--every", "5m", "--header", "k=1", "--header", "k=2"],
            "two headers have the name k",
        ),
        (&["a b", "0 3 * * *", "x"], "the schedule name"),
        (&["a", "0 3 * * *", "x", "--missed", "some"], "skip, last, all"),
        (&["a", "0", "3", "*", "*", "*", "x"], "in quotes"),
    ] {
        let error = store.relq_with(&[&["cron", "add"], arguments].concat()).fails(2);
        assert!(error.contains(why), "{arguments:?}: {error}");
    }
    assert!(!store.file("test.db").exists());
}

/// R28: the store's clock was set back by three hours, so the last tick is in the future. No
/// scheduler pushes the ticks up to it again, and so neither command shows them.
#[test]
fn ticks_that_were_pushed_before_the_clock_was_set_back_are_not_shown() {
    let mut store = Store::redis();
    add(&store, &["poll", "--every", "1h", "poll"]);
    let move_last_tick = "local stored = redis.call('HGET', KEYS[1], 'poll') \
         local last_ms = struct.unpack('>I6', stored) + 3 * 3600000 \
         redis.call('HSET', KEYS[1], 'poll', struct.pack('>I6', last_ms) .. stored:sub(7)) \
         return 'OK'";
    let command = ["EVAL", move_last_tick, "1", "{default}:schedules"];
    let moved = store.server().command(&command.map(str::as_bytes));
    assert_eq!(moved, b"$2\r\nOK\r\n");

    let listed = &list(&store)[0];
    let printed = store.relq("cron next poll --json").json();

    let last = listed["last_tick_ms"].as_i64().unwrap();
    let first = printed[0]["tick_ms"].as_i64().unwrap();
    assert!(first > last, "R28: {first} is not later than the last tick {last}");
    assert_eq!(listed["next_tick_ms"], printed[0]["tick_ms"], "in `relq cron list`");
}

/// A scheduler would notice a new schedule too late.
#[test]
fn a_scheduler_that_would_look_too_seldom_is_refused() {
    let store = Store::sqlite();
    store.create();

    let error = store.relq("cron run --look-every 31s").fails(2);

    assert!(error.contains("at most 30 seconds"), "{error}");
}

#[test]
fn a_store_that_lacks_schedules_is_refused_by_name() {
    let store = Store::on_tcp("keyspace");
    let lines = [
        "cron add poll --every 5m poll",
        "cron list",
        "cron next poll",
        "cron remove poll",
        "cron run",
        "work --schedules -- true",
    ];
    for line in lines {
        let error = store.relq(line).fails(2);
        assert!(
            error.contains("the backend keyspace has no schedules"),
            "{line}: {error}"
        );
    }
}

/// The backend of its parts has schedules, so the message names the parts.
#[test]
fn a_queue_of_several_partitions_is_refused_as_such() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=2");
    for line in
        ["cron add poll --every 5m poll", "cron list", "work --schedules -- true"]
    {
        let error = store.relq(line).fails(2);
        let why = "a queue of several partitions has no schedules";
        assert!(error.contains(why), "{line}: {error}");
    }
}

/// R21: only a person can repair the key of the schedules. A scheduler that went on would
/// push no tick for ever, and its supervisor would not notice.
#[test]
fn a_scheduler_that_is_refused_ends_with_the_reason() {
    let mut store = Store::redis();
    for queue in ["first", "second"] {
        add(&store, &["poll", "-q", queue, "--every", "5m", "poll"]);
    }
    let key = b"{second}:schedules";
    store.server().command(&[b"DEL", key]);
    store.server().command(&[b"SET", key, b"of another program"]);
    let why = "zset read schedules: the store cannot be used";

    let error = store.relq("cron run -q second").fails(1);
    assert!(error.contains(&format!("relq: {why}")), "{error}");

    let line = "work --schedules --serve first --serve second -- true";
    let error = store.relq(line).fails(1);
    let last = error.lines().last().unwrap();
    let expected = format!("relq: the scheduler of the queue second has ended: {why}");
    assert!(last.starts_with(&expected), "{error}");
}

/// Another client has written fields that are not schedules.
#[test]
fn what_is_not_a_schedule_is_named_and_stops_no_command() {
    let mut store = Store::redis();
    add(&store, &["poll", "--every", "5m", "poll"]);
    let key = b"{default}:schedules";
    store.server().command(&[b"HSET", key, b"a\x1b", b"123456", b"short", b"12345"]);

    let ended = store.relq("cron list").run();

    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(String::from_utf8_lossy(&ended.out).contains("\npoll  every 5m"));
    assert_eq!(ended.err.matches("relq: not a schedule: ").count(), 2, "{}", ended.err);
    assert!(!ended.err.contains('\x1b'), "{}", ended.err);
    assert_eq!(store.relq("cron remove short").ok(), "short removed\n");
    store.relq("cron next poll").ok();
}

#[test]
fn a_command_on_a_missing_file_creates_none() {
    let store = Store::sqlite();
    for line in ["cron list", "cron next a", "cron remove a"] {
        store.relq(line).fails(1);
    }
    assert!(!store.file("test.db").exists());
}
