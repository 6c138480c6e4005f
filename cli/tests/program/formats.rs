//! `-o table`, `-o json` and `-o jsonl` are alike on all commands.

use serde_json::Value;

use crate::relq::Store;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A store with jobs in several states, a batch and a schedule.
fn store() -> Store {
    let store = Store::sqlite();
    store.push("--id dead --max-attempts 1 a");
    store.relq("work --until-empty -- false").fails(3);
    store.relq("push --id one b").ok();
    store.relq("push --id two c").ok();
    store.relq("batch submit --id batch").input("0:x\n0:y\n").ok();
    store.relq_with(&["cron", "add", "nightly", "0 3 * * *", "job"]).ok();
    store
}

/// Each record is on a line of its own, and is the same as in the array.
#[test]
fn records_are_an_array_or_lines() {
    let store = store();
    for (line, least) in [
        ("peek", 4),
        ("dead list", 1),
        ("batch list", 2),
        ("cron list", 1),
        ("cron next nightly", 5),
        ("stats --by-part", 1),
        ("result unknown other", 2),
    ] {
        let run = |format: &str| {
            String::from_utf8(store.relq(&format!("{line} {format}")).run().out)
                .unwrap()
        };
        let array: Vec<Value> = serde_json::from_str(&run("-o json")).unwrap();
        assert_eq!(array.len(), least, "{line}");
        let plain = |text: &str| text.split("age_ms").next().unwrap().to_owned();
        assert_eq!(plain(&run("--json")), plain(&run("-o json")), "{line}");
        let rows = lines(&run("-o jsonl"));
        assert_eq!(rows.len(), array.len(), "{line}");
        if line != "stats --by-part" {
            assert_eq!(rows, array, "{line}");
        }
        let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        assert_eq!(head(&run("-o table")), head(&run("")), "{line}");
    }
}

#[test]
fn what_was_done_is_an_array_or_lines() {
    let store = store();
    let pushed = lines(&store.relq("push -o jsonl d e").ok());
    assert_eq!(pushed.len(), 2);
    assert_eq!(pushed[0]["stored"], true);
    let count = lines(&store.relq("push --quiet -o jsonl d e").ok());
    assert_eq!(count[0]["stored"], 2);
    let submitted =
        lines(&store.relq("batch submit -o jsonl").input("0:a:b\n0\n").ok());
    let pieces: Vec<_> = submitted.iter().map(|batch| &batch["pieces"]).collect();
    assert_eq!(pieces, [2, 0]);
    let cancelled = lines(&store.relq("cancel one two -o jsonl").ok());
    let states: Vec<_> = cancelled.iter().map(|job| &job["was"]).collect();
    assert_eq!(states, ["ready", "ready"]);
    let ended = lines(&store.relq("batch cancel batch batch-2 -o jsonl").ok());
    assert_eq!(ended.len(), 2);
}

/// A command that prints one value prints it on one line in both formats.
#[test]
fn one_value_is_one_line() {
    let store = store();
    for line in [
        "stats",
        "audit",
        "recover",
        "pause",
        "resume",
        "dead redrive --all",
        "dead purge --all",
        "batch status batch",
        "batch alter batch --priority 3",
        "cron remove nightly",
        "ping",
        "purge --yes",
    ] {
        for format in ["json", "jsonl"] {
            let ended = store.relq(&format!("{line} -o {format}")).run();
            let out = String::from_utf8(ended.out).unwrap();
            let is_second = line == "cron remove nightly" && format == "jsonl";
            let expected = if is_second { 0 } else { 1 };
            assert_eq!(
                lines(&out).len(),
                expected,
                "{line} -o {format}: {}",
                ended.err
            );
            assert!(lines(&out).iter().all(Value::is_object), "{line}");
        }
    }
}
