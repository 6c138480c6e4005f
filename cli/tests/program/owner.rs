//! Commands on a queue on Redis that another backend owns (R25).

use std::time::Duration;

use relq::{ClaimRequest, QueueName, ReliableQueueExt, WorkerId};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::relq::Store;

/// Claims one job and does not settle it, so that the job stays leased to a worker that
/// has ended.
fn lease_one(url: &str) {
    Runtime::new().unwrap().block_on(async {
        let queue = QueueName::new("default").unwrap();
        let queue = relq::connect(url, &queue).await.unwrap();
        let worker = WorkerId::new("w").unwrap();
        let ask = ClaimRequest::new(worker, Duration::from_secs(600));
        assert!(queue.claim_one(&ask).await.unwrap().is_some());
    });
}

/// Returns all keys of the Redis server with their dumped values, so that a test can
/// check that a command changed nothing.
fn contents(store: &mut Store) -> Vec<u8> {
    let script = b"local keys, all = redis.call('KEYS', '*'), {} table.sort(keys) \
                   for _, key in ipairs(keys) do \
                   all[#all + 1] = key .. redis.call('DUMP', key) end \
                   return table.concat(all)";
    store.server().command(&[b"EVAL", script, b"0"])
}

/// Returns the store's URL with `backend` in its scheme and `option` at its end.
fn as_another(store: &mut Store, backend: &str, option: &str) -> String {
    format!("{backend}+{}{option}", store.server().url())
}

/// A URL with the wrong backend changes nothing. Before markers existed, a plain
/// `redis://` destroyed the leases of a processing list, and the running jobs of a
/// circular list.
#[test]
fn a_wrong_scheme_changes_nothing_and_names_the_right_one() {
    for (backend, option) in [("processing-list", "?mode=shared"), ("circular", "")] {
        let mut store = Store::redis();
        let right = as_another(&mut store, backend, option);
        let wrong = store.server().url();
        store.url = right.clone();
        store.push("a b c");
        lease_one(&right);
        let before = contents(&mut store);

        for line in
            ["recover", "work --exec true --until-empty", "stats", "purge --yes"]
        {
            let error = store.relq(line).env("RELQ_URL", &wrong).fails(1);

            assert!(
                error.contains(&format!("open it with {right}")),
                "{line}: {error}"
            );
        }
        assert_eq!(contents(&mut store), before);
        assert_eq!(store.count("default", "leased"), 1);
    }
}

/// The error that names the right URL does not contain its password.
#[test]
fn the_right_url_is_shown_without_the_password() {
    let mut store = Store::redis_with(&["--requirepass", "s3cret"]);
    let server = store.server().url();
    store.url = format!("circular+{server}?pass=s3cret");
    store.push("a");

    let wrong = format!("{server}?pass=s3cret");
    let error = store.relq("stats").env("RELQ_URL", &wrong).fails(1);

    assert!(error.contains(&format!("circular+{server}")), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

/// A queue without a marker is refused, and the command that the error names repairs
/// it.
#[test]
fn a_queue_without_a_marker_is_marked_by_the_command_that_the_error_names() {
    let mut store = Store::redis();
    store.push("a b --delay 1h");
    let url = store.url.clone();
    let shown = store.relq("marker show --json").json();
    let marked = json!({"queue": "default", "marker": "relq 4 zset", "url": url, "has_keys": true});
    assert_eq!(shown, marked);
    store.server().command(&[b"DEL", b"{default}:marker"]);
    let unmarked =
        json!({"queue": "default", "marker": null, "url": null, "has_keys": true});
    assert_eq!(store.relq("marker show --json").json(), unmarked);

    let error = store.relq("stats").fails(1);

    let command = error.split('`').nth(1).unwrap();
    let words = command.strip_prefix("relq ").unwrap();
    assert_eq!(words, format!("marker set -q default --url {url}"));
    let text = store.relq(words).ok();
    assert_eq!(text, format!("default: relq 4 zset\nopen it with {url}\n"));
    assert_eq!(store.count("default", "scheduled"), 2);
}

#[test]
fn a_queue_at_work_is_not_marked() {
    let mut store = Store::redis();
    store.push("a");
    lease_one(&store.url);
    store.server().command(&[b"DEL", b"{default}:marker"]);

    let error = store.relq("marker set").fails(1);

    assert!(error.contains("not at rest") && error.contains("1 lease"), "{error}");
}

#[test]
fn a_new_queue_has_no_marker_and_looking_leaves_none() {
    let mut store = Store::redis();
    store.relq("stats").ok();
    let text = store.relq("marker show").ok();
    assert_eq!(text, "default: no marker, and no key of relq's\n");
    assert_eq!(store.relq("queues").ok(), "");
    assert_eq!(contents(&mut store), b"$0\r\n\r\n");
}

#[test]
fn a_marker_is_removed_only_from_an_empty_queue() {
    let store = Store::redis();
    store.push("a");
    let error = store.relq("marker remove").fails(1);
    assert!(error.contains("has other keys or another owner"), "{error}");
    assert_eq!(store.count("default", "ready"), 1);

    store.relq("purge --yes").ok();
    let text = store.relq("marker remove").ok();
    assert_eq!(text, "default: no marker, and no key of relq's\n");
}

#[test]
fn a_value_that_is_no_marker_is_shown() {
    let mut store = Store::redis();
    store.push("a");
    store.server().command(&[b"SET", b"{default}:marker", b"no marker\n"]);

    let text = store.relq("marker show").ok();
    let shown = store.relq("marker show --json").json();

    assert!(text.starts_with("default: no marker, but "), "{text}");
    assert!(text.contains("no marker\\"), "the end of the line is escaped: {text}");
    let damaged = json!({"queue": "default", "marker": "no marker\\n", "url": null, "has_keys": true});
    assert_eq!(shown, damaged);
}

#[test]
fn a_file_has_no_markers() {
    let store = Store::sqlite();
    for line in ["marker show", "marker set"] {
        let error = store.relq(line).fails(2);
        assert!(error.contains("has no marker"), "{error}");
    }
}
