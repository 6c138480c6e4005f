//! `relq queues`: the queues of a store with their figures.

use relq::{NewJob, QueueName};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{on_each_store, relq::Store};

/// A file with 130 queues, which are more than one call lists. The queue `q-012` has 13 jobs,
/// and so on.
pub(crate) fn store_of_many_queues() -> Store {
    let store = Store::sqlite();
    Runtime::new().unwrap().block_on(async {
        for at in 0..130 {
            let name = QueueName::new(format!("q-{at:03}")).unwrap();
            let queue = relq::connect(&store.url, &name).await.unwrap();
            queue.push(&vec![NewJob::new("x"); at + 1], None).await.unwrap();
        }
    });
    store
}

/// The row of the queue in the JSON output of `relq queues`.
fn row(store: &Store, line: &str, queue: &str) -> Value {
    let rows = store.relq(&format!("queues --json {line}")).json();
    let rows = rows.as_array().unwrap();
    let mut fitting = rows.iter().filter(|row| row["queue"] == queue);
    let row = fitting.next().unwrap_or_else(|| panic!("no {queue} in {rows:?}"));
    assert!(fitting.next().is_none(), "{rows:?}");
    row.clone()
}

on_each_store! {
    fn all_queues_are_listed_with_their_jobs(store) {
        store.push("-q emails --delay 1h later");
        store.push("-q emails a b");
        store.push("-q bills --max-attempts 1 c");
        store.relq("work -q bills --until-empty -- false").fails(3);
        store.relq("pause -q bills").ok();

        let emails = row(store, "", "emails");
        let bills = row(store, "", "bills");

        let figures = |row: &Value| {
            ["ready", "scheduled", "leased", "dead"].map(|figure| row[figure].clone())
        };
        assert_eq!(figures(&emails), [json!(2), json!(1), json!(0), json!(0)]);
        assert_eq!(figures(&bills), [json!(0), json!(0), json!(0), json!(1)]);
        assert_eq!((&emails["paused"], &bills["paused"]), (&json!(false), &json!(true)));
        assert!(emails["oldest_ready_age_ms"].is_u64(), "{emails}");
        assert_eq!(bills["oldest_ready_age_ms"], json!(null));
        let url = emails["url"].as_str().unwrap();
        let backend = emails["backend"].as_str().unwrap();
        assert!(url.starts_with(backend), "{emails}");
        assert_eq!(emails["pushed_per_s"], json!(null));

        let text = store.relq("queues").ok();
        let lines: Vec<Vec<_>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][..3], ["QUEUE", "BACKEND", "READY"]);
        assert_eq!(lines[1][..3], ["bills", backend, "0"], "sorted by name: {text}");
        assert_eq!(lines[2][..3], ["emails", backend, "2"]);
        assert!(lines[1].contains(&"paused") && !lines[2].contains(&"paused"));
        let ready = store.relq("queues -o jsonl").ok();
        assert_eq!(ready.lines().count(), 2);
    }

    fn two_readings_give_rates(store) {
        store.push("first");
        let mut reading = store.relq("queues --json --interval 3s").start();
        // Jobs are pushed from before the first reading until after the second.
        let mut pushed = 0;
        while reading.child.try_wait().unwrap().is_none() {
            store.push("another");
            pushed += 1;
        }
        let ended = reading.end();

        let rows: Value = serde_json::from_slice(&ended.out).unwrap();
        let rate = |name: &str| rows[0][name].as_f64().unwrap();
        let most = f64::from(pushed) / 3.0;
        assert!(rate("pushed_per_s") > 0.0 && rate("pushed_per_s") <= most, "{rows}");
        assert!(rate("ended_per_s") == 0.0, "{rows}");
    }
}

/// The queues are listed and read in several steps.
#[test]
fn many_queues_are_listed_in_order_with_their_own_jobs() {
    let store = store_of_many_queues();

    let rows = store.relq("queues --json").json();

    let rows = rows.as_array().unwrap();
    let listed: Vec<_> =
        rows.iter().map(|row| (row["queue"].clone(), row["ready"].clone())).collect();
    let expected: Vec<_> =
        (0..130).map(|at| (json!(format!("q-{at:03}")), json!(at + 1))).collect();
    assert_eq!(listed, expected);
}

#[test]
fn an_empty_server_has_no_queues() {
    let store = Store::redis();
    assert_eq!(store.relq("queues").ok(), "");
    assert_eq!(store.relq("queues --json").json(), json!([]));
}

/// A queue that cannot be opened does not hide the others.
#[test]
fn a_queue_that_cannot_be_read_is_shown_with_the_reason() {
    let mut store = Store::redis();
    store.push("-q good a");
    store.server().command(&[b"SET", b"{odd}:marker", b"no marker"]);
    store.server().command(&[b"SET", b"{new}:marker", b"relq 99 zset"]);

    let ended = store.relq("queues").run();

    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("2 of 3 queues cannot be read"), "{}", ended.err);
    let text = String::from_utf8(ended.out).unwrap();
    assert!(text.contains("good") && text.contains("its marker cannot be read"));
    assert!(text.contains("newer relq"), "{text}");
}

/// The rows of all backends are read with the password of the URL, and a row shows none.
#[test]
fn queues_of_other_backends_are_read_with_the_password_of_the_url() {
    let mut store = Store::redis_with(&["--requirepass", "s3cret"]);
    let server = store.server().url();
    for (backend, option) in [("circular", "&finish=lrem"), ("stream", "")] {
        let url = format!("{backend}+{server}?pass=s3cret{option}");
        store.relq(&format!("push -q {backend} a")).env("RELQ_URL", &url).ok();
    }
    store.url = format!("{server}?pass=s3cret");

    let rows = store.relq("queues --json").ok();

    assert!(!rows.contains("s3cret"), "{rows}");
    assert_eq!(row(&store, "", "circular")["ready"], json!(1));
    assert_eq!(row(&store, "", "stream")["backend"], json!("stream"));
    let text = store.relq("queues").ok();
    assert!(text.contains(&format!("circular+{server}?finish=lrem")), "{text}");
}

/// The parts of a queue are one row, with the jobs of all of them.
#[test]
fn the_parts_of_a_queue_are_one_row() {
    let mut store = Store::redis();
    let bare = store.url.clone();
    store.url = format!("{bare}?partitions=3");
    for job in 0..6 {
        store.push(&job.to_string());
    }
    store.url = bare;

    let rows = store.relq("queues --json").json();

    assert_eq!(rows.as_array().unwrap().len(), 1, "{rows}");
    assert_eq!((&rows[0]["queue"], &rows[0]["ready"]), (&json!("default"), &json!(6)));
}
