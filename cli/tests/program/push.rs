//! `relq push` stores jobs with all its options.

use serde_json::json;

use crate::{on_each_store, relq::Store};

/// The SHA-256 of the payloads `a` and `b`, as `sha256sum` prints it.
const KEY_OF_A: &str =
    "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
const KEY_OF_B: &str =
    "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d";

on_each_store! {
    /// R2: a payload may be any bytes but the separator. The last line needs no
    /// newline.
    fn each_line_is_a_job(store) {
        let ids = store.relq("push --file -").input(b"a\n\n\r\t\xff\nlast").ok();
        assert_eq!(ids.lines().count(), 4);

        let jobs = store.relq("peek --json").json();
        let payloads: Vec<_> = jobs.as_array().unwrap().iter().map(|job| {
            (job["payload"].clone(), job["payload_base64"].clone())
        }).collect();
        assert_eq!(payloads, [
            (json!("a"), json!(null)),
            (json!(""), json!(null)),
            (json!(null), json!("DQn/")),
            (json!("last"), json!(null)),
        ]);
        assert_eq!(jobs[0]["id"], ids.lines().next().unwrap());
    }

    fn a_nul_separates_when_asked_to(store) {
        store.relq("push --file - --null").input(b"a\nb\0c\0").ok();
        let jobs = store.relq("peek --json").json();
        assert_eq!((&jobs[0]["payload"], &jobs[1]["payload"]), (&json!("a\nb"), &json!("c")));
        assert_eq!(jobs.as_array().unwrap().len(), 2);
    }

    fn a_file_is_read_by_its_name(store) {
        std::fs::write(store.file("lines"), "1\n2\n3\n").unwrap();
        assert_eq!(store.relq("push --quiet --file lines").ok(), "3\n");
        let count = store.relq("push --quiet --json --file lines").json();
        assert_eq!(count, json!({"stored": 3, "duplicates": 0}));
        assert_eq!(store.count("default", "ready"), 6);
    }

    fn payloads_are_arguments_too(store) {
        let pushed = store.relq_with(&["push", "two words", "--json", "--", "--dash"]).json();
        assert_eq!(pushed.as_array().unwrap().len(), 2);
        assert_eq!(pushed[0]["stored"], true);
        assert_eq!(store.relq("peek --json").json()[1]["payload"], "--dash");
    }

    /// More payloads than one call takes are pushed by several calls.
    fn arguments_of_several_calls_are_all_pushed(store) {
        let numbers: Vec<_> = (0..2500).map(|n| n.to_string()).collect();
        let line: Vec<_> = ["push", "--quiet"].into_iter()
            .chain(numbers.iter().map(String::as_str)).collect();
        assert_eq!(store.relq_with(&line).ok(), "2500\n");
        let jobs = store.relq("peek --json --limit 3000").json();
        let payloads = jobs.as_array().unwrap().iter().map(|job| job["payload"].clone());
        assert!(payloads.eq(numbers.iter().map(String::as_str)));
    }

    fn the_options_reach_the_job(store) {
        store.push("later --delay 1h --priority 9 --max-attempts 3 --expires-in 2h");
        let job = &store.relq("peek --state scheduled --json").json()[0];
        assert_eq!(job["payload"], "later");
        assert_eq!(job["priority"], 9);
        assert_eq!(job["max_attempts"], 3);
        assert!(job["expires_at_ms"].as_i64() > job["due_ms"].as_i64());
        assert!(job["due_ms"].as_i64() > Some(0));
    }

    /// An option holds for each job of a push, however its payload is given.
    fn each_option_holds_for_each_job_however_it_is_pushed(store) {
        std::fs::write(store.file("lines"), "a\nb\n").unwrap();
        let options = "--expires-in 2h --priority 9 --max-attempts 3 --lease 40s \
                       --keep-result 3h --header tenant=acme --unique-payload";
        for (way, payloads, input, jobs) in [
            ("arguments", "a b", "", 2),
            ("file", "--file lines", "", 2),
            ("pipe", "", "a\nb\n", 2),
            ("wait", "--wait=1ms a", "", 1),
        ] {
            for time in ["--delay 1h", "--at 2099-01-01T00:00:00Z"] {
                let what = format!("{time} by {way}");
                let line = format!("push {options} {time} -q {way} {payloads}");
                let pushed = store.relq(&line).input(input).run();
                // A job that was waited for has not ended.
                let code = if way == "wait" { 4 } else { 0 };
                assert_eq!(pushed.code, Some(code), "{what}: {}", pushed.err);

                let list = format!("peek --state scheduled --json -q {way}");
                let listed = store.relq(&list).json();

                let listed = listed.as_array().unwrap();
                assert_eq!(listed.len(), jobs, "{what}: {listed:?}");
                for job in listed {
                    let key = if job["payload"] == "a" { KEY_OF_A } else { KEY_OF_B };
                    for (option, value) in [
                        ("priority", json!(9)),
                        ("max_attempts", json!(3)),
                        ("lease_ms", json!(40_000)),
                        ("keep_result_ms", json!(10_800_000)),
                        ("headers", json!({"tenant": "acme"})),
                        ("unique", json!(key)),
                    ] {
                        assert_eq!(job[option], value, "{option} of {what}: {job}");
                    }
                    let ms = |time: &str| job[time].as_i64().unwrap();
                    let pushed = ms("enqueued_at_ms");
                    let is_delay = time.starts_with("--delay");
                    let due = if is_delay { pushed + 3_600_000 } else { 4_070_908_800_000 };
                    for (time, expected) in
                        [("expires_at_ms", pushed + 7_200_000), ("due_ms", due)]
                    {
                        let off = (ms(time) - expected).abs();
                        assert!(off < 60_000, "{time} of {what} is {off} ms off: {job}");
                    }
                }
                store.relq(&format!("purge --yes -q {way}")).ok();
            }
        }
    }

    /// A duplicate says whether its id or its unique key is taken.
    fn a_duplicate_names_what_it_shares_with_the_existing_job(store) {
        store.push("--id first --unique k a");
        for (line, shared) in [
            ("push --json --id first b", "id"),
            ("push --json --unique k b", "unique"),
        ] {
            let pushed = store.relq(line).json();

            let expected = json!([{"id": "first", "stored": false, "duplicate_of": shared}]);
            assert_eq!(pushed, expected, "{line}");
        }
        let pushed = store.relq("push --id first b").run();
        assert_eq!(String::from_utf8(pushed.out).unwrap(), "first\n");
        assert!(pushed.err.contains("0 stored, 1 there already"), "{}", pushed.err);
    }

    /// R15: a job with a larger priority runs sooner.
    fn a_larger_priority_is_worked_first(store) {
        store.push("low --priority 0");
        store.push("high --priority 9");
        store.push("normal");
        let out = store.relq("work --exec cat --concurrency 1 --until-empty").ok();
        assert_eq!(out, "highnormallow");
    }

    /// R16: a unique key is held by one unfinished job at most.
    fn a_unique_key_is_held_by_one_job(store) {
        let first = store.relq("push --unique k a --json").json();
        let second = store.relq("push --unique k b --json").json();
        assert_eq!(second[0]["stored"], false);
        assert_eq!(second[0]["duplicate_of"], "unique");
        assert_eq!(second[0]["id"], first[0]["id"]);

        let line = "push --unique-payload --quiet --json --file -";
        let pushed = store.relq(line).input("x\ny\nx\n").json();
        assert_eq!(pushed, json!({"stored": 2, "duplicates": 1}));
        // The key of a payload is its SHA-256, as `sha256sum` prints it.
        let key = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
        assert_eq!(store.relq("peek --json").json()[1]["unique"], key);
    }

    /// R4: pushing an id a second time stores no second job.
    fn an_id_names_one_job(store) {
        assert_eq!(store.push("--id order-1 a"), ["order-1"]);
        assert_eq!(store.push("--id order-1 b"), ["order-1"]);
        let jobs = store.relq("peek --json").json();
        assert_eq!(jobs.as_array().unwrap().len(), 1);
        assert_eq!(jobs[0]["payload"], "a");
    }

    fn queues_are_told_apart_by_name_before_and_after_the_command(store) {
        store.relq("-q one push a").ok();
        store.relq("push a b --queue two").ok();
        assert_eq!(store.count("one", "ready"), 1);
        assert_eq!(store.count("two", "ready"), 2);
    }

    fn a_hundred_thousand_lines_are_pushed_and_a_thousand_worked(store) {
        let lines = |count: u32| {
            (1..=count).map(|n| format!("{n}\n")).collect::<String>()
        };
        let push = store.relq("push --quiet --file -").input(lines(100_000));
        assert_eq!(push.ok(), "100000\n");
        assert_eq!(store.count("default", "ready"), 100_000);

        store.relq("push --quiet --file - -q first").input(lines(1000)).ok();
        let line = "work -q first --exec cat --concurrency 8 --until-empty";
        let worked = store.relq(line).run();
        assert_eq!(worked.code, Some(0), "{}", worked.err);
        let digits = 9 + 2 * 90 + 3 * 900 + 4;
        let newlines = 1000;
        assert_eq!(worked.out.len(), digits + newlines);
        assert_eq!(store.count("first", "finished"), 1000);
        assert_eq!(store.count("first", "leased"), 0);
    }
}

/// The keys of the payloads belong to several parts of the queue.
#[test]
fn unique_payloads_are_pushed_to_a_queue_of_several_parts() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    let lines: String = (1..=100).map(|n| format!("{n}\n")).collect();
    let push = || store.relq("push --unique-payload --quiet -f -").input(&*lines);

    assert_eq!(push().ok(), "100\n");
    assert_eq!(push().ok(), "0 stored, 100 there already\n");

    assert_eq!(store.push("--unique-payload a b c d e f").len(), 6);
    assert_eq!(store.count("default", "ready"), 106);
}
