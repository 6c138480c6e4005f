//! The filters of `relq dead list`.

use serde_json::Value;

use crate::{on_each_store, relq::Store};

/// Pushes a job that dies with this text as its last error.
fn die(store: &Store, id: &str, payload: &str, error: &str) {
    store.push(&format!("--id {id} --max-attempts 1 {payload}"));
    let script = format!("echo {error} >&2; exit 1");
    store.relq_with(&["work", "--until-empty", "--", "sh", "-c", &script]).fails(3);
}

fn ids(store: &Store, filter: &str) -> Vec<String> {
    let list = store.relq(&format!("dead list --json {filter}")).json();
    let ids = list.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

on_each_store! {
    fn dead_jobs_are_chosen_by_error_payload_and_age(store) {
        die(store, "slow", "mail-to-anna", "timeout");
        die(store, "full", "mail-to-bert", "disk_full");
        die(store, "full-2", "fax-to-anna", "disk_full");

        assert_eq!(ids(store, "--error timeout"), ["slow"]);
        assert_eq!(ids(store, "--error disk_full"), ["full", "full-2"]);
        assert_eq!(ids(store, "--payload anna"), ["slow", "full-2"]);
        assert_eq!(ids(store, "--payload anna --error disk_full"), ["full-2"]);
        assert_eq!(ids(store, "--newer-than 1h").len(), 3);
        assert!(ids(store, "--older-than 1h").is_empty());
        assert!(ids(store, "--error nothing").is_empty());
        assert_eq!(ids(store, "--error disk_full -n 1"), ["full"]);
    }

    /// A filter reads beyond the first page, and its table has one head.
    fn a_filter_reads_all_pages(store) {
        let lines: String = (0..250).map(|n| format!("job-{n}\n")).collect();
        store.relq("push --quiet --max-attempts 1").input(lines).ok();
        store.relq("work --until-empty -- false").fails(3);

        let found = store.relq("dead list -o json --payload 7 -n 1000").json();
        let found: Vec<_> = found.as_array().unwrap().iter().map(Value::to_string).collect();
        assert_eq!(found.len(), (0..250).filter(|n| n.to_string().contains('7')).count());
        let ended = store.relq("dead list --payload 7 -n 3").run();
        let table = String::from_utf8(ended.out).unwrap();
        assert_eq!(table.matches("PAYLOAD").count(), 1, "{table}");
        assert_eq!(table.matches("job-").count(), 3, "{table}");
        assert!(ended.err.contains("there may be more: --limit 30"), "{}", ended.err);
    }
}
