//! The filters and the groups of `relq dead`.

use serde_json::{Value, json};

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

/// A filter by age compares the store's times with the clock of the machine, so each says so.
#[test]
fn the_help_of_each_age_names_the_clock() {
    let store = Store::sqlite();
    for command in ["list", "redrive", "purge"] {
        let help = store.relq(&format!("dead {command} --help")).ok();
        let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let named = words.matches("by the clock of this machine").count();
        assert_eq!(named, 2, "{command}: {help}");
    }
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

    /// The ids of a list that is cut go into a pipe, and standard error says that there are
    /// more.
    fn a_cut_list_of_json_says_that_there_are_more(store) {
        let lines: String = (0..21).map(|n| format!("job-{n}\n")).collect();
        store.relq("push --quiet --max-attempts 1").input(lines).ok();
        store.relq("work --until-empty -- false").fails(3);

        let ended = store.relq("dead list --payload job -o jsonl").run();

        let lines = String::from_utf8(ended.out).unwrap();
        assert_eq!((ended.code, lines.lines().count()), (Some(0), 20), "{}", ended.err);
        assert!(ended.err.contains("there may be more: --limit 200"), "{}", ended.err);
        let ended = store.relq("dead list --json -n 21").run();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    }

    /// The payloads of a page are limited, so that a page with few jobs may not be the last.
    fn a_filter_reads_the_pages_of_large_payloads(store) {
        let lines = format!("{}\n", "x".repeat(700 << 10)).repeat(3);
        store.relq("push --quiet --expires-in 1ms").input(lines).ok();
        store.relq("work --until-empty -- true").fails(3);

        assert_eq!(store.relq("dead purge --payload x").ok(), "3 removed\n");
    }

    fn a_filter_chooses_what_is_retried_and_purged(store) {
        die(store, "slow", "mail-to-anna", "timeout");
        die(store, "full", "mail-to-bert", "disk_full");
        die(store, "late", "fax-to-anna", "timeout");

        let text = store.relq("dead purge --error timeout --payload fax").ok();
        assert_eq!(text, "1 removed\n");
        assert_eq!(store.relq("dead retry --error timeout").ok(), "1 ready again\n");

        assert_eq!(ids(store, ""), ["full"]);
        assert_eq!(store.relq("show slow --json").json()["state"], json!("ready"));
        assert_eq!(store.relq("dead retry --error nothing").ok(), "0 ready again\n");
        for line in ["dead retry full --error x", "dead purge --all --error x",
            "dead purge --all --older-than 1h", "dead retry --all --newer-than 1h"] {
            let error = store.relq(line).fails(2);
            assert!(error.contains("give neither ids nor --all"), "{line}: {error}");
        }
        let error = store.relq("dead purge").fails(2);
        assert!(error.contains("a filter such as --error, or --all"), "{error}");
        assert_eq!(ids(store, ""), ["full"]);
    }

    /// Jobs with the same error are one group, whatever numbers the error has.
    fn dead_jobs_are_grouped_by_their_error(store) {
        die(store, "a", "x", "no_answer_after_31_s");
        die(store, "b", "x", "disk_full");
        die(store, "c", "x", "no_answer_after_47_s");

        let groups = store.relq("dead list --group --json").json();
        let exact = store.relq("dead list --group --exact -o jsonl").ok();

        assert_eq!(groups.as_array().unwrap().len(), 2, "{groups}");
        assert_eq!(groups[0]["jobs"], json!(2));
        let mut ids: Vec<_> = groups[0]["ids"].as_array().unwrap().iter().collect();
        ids.sort_by_key(|id| id.as_str());
        assert_eq!(ids, [&json!("a"), &json!("c")]);
        assert!(groups[0]["error"].as_str().unwrap().contains("no_answer_after_#_s"));
        assert!(groups[0]["example"].as_str().unwrap().contains("after_47_s"), "the newest");
        assert!(groups[0]["first_ms"].as_i64() < groups[0]["last_ms"].as_i64());
        assert_eq!(exact.lines().count(), 3, "{exact}");
        let ended = store.relq("dead list --group -n 1").run();
        let table = String::from_utf8(ended.out).unwrap();
        assert!(table.starts_with("JOBS") && table.contains("no_answer_after_#_s"));
        assert!(!table.contains("disk_full"), "{table}");
        let row: Vec<_> = table.lines().nth(1).unwrap().split_whitespace().take(3).collect();
        assert_eq!(row[0], "2", "the number of jobs: {table}");
        assert!(row[1] < row[2], "the first death is before the last one: {table}");
        assert!(ended.err.contains("there are 2 groups"), "{}", ended.err);
        store.relq("dead list --group --error x").fails(2);
        store.relq("dead list --exact").fails(2);
    }
}
