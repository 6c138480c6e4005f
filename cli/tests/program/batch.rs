//! `relq batch`: submits the batches of a file, which workers run like any jobs, and
//! which complete once.

use rustix::process::Signal;
use serde_json::json;

use crate::relq::{Running, Store, wait_until};

/// Makes one test for each store that has batches, from a function that takes a store.
macro_rules! on_stores_with_batches {
    ($($(#[$doc:meta])* fn $name:ident($store:ident) $body:block)*) => {
        mod sqlite {
            $($(#[$doc])* #[test] fn $name() {
                super::$name(&crate::relq::Store::sqlite());
            })*
        }
        mod stream {
            $($(#[$doc])* #[test] fn $name() {
                super::$name(&crate::relq::Store::stream());
            })*
        }
        $(fn $name($store: &Store) $body)*
    };
}

/// Submits these lines as batches. Returns the ids of the batches.
fn submit(store: &Store, options: &str, lines: &str) -> Vec<String> {
    let line = format!("batch submit --file - {options}");
    let out = store.relq(&line).input(lines).ok();
    out.lines().map(str::to_owned).collect()
}

fn status(store: &Store, id: &str) -> serde_json::Value {
    store.relq(&format!("batch status {id} --json")).json()
}

on_stores_with_batches! {
    /// B4, B5: each line is a batch, and any worker runs its pieces.
    fn a_file_of_requests_is_worked_on(store) {
        let ids = submit(store, "", "# two requests\n2:a:b:c\n\n0:d\n");
        assert_eq!(ids.len(), 2);
        let before = status(store, &ids[0]);
        assert_eq!((&before["state"], &before["limit"]), (&json!("sealed"), &json!(2)));
        assert_eq!((&before["total"], &before["waiting"]), (&json!(3), &json!(3)));

        let command =
            ["work", "--until-empty", "--exec", "sh", "-c", "cat >$RELQ_BATCH-$RELQ_ID"];
        store.relq_with(&command).ok();

        for (id, pieces) in ids.iter().zip([3, 1]) {
            let out = store.relq(&format!("batch wait {id}")).ok();
            assert!(out.contains("state      done\n"), "{out}");
            assert_eq!(status(store, id)["done"], pieces);
            let begins = |name: &str| name.starts_with(&format!("{id}-"));
            let files = std::fs::read_dir(store.folder.path()).unwrap();
            let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
            assert_eq!(names.filter(|name| begins(name)).count(), pieces, "files of {id}");
        }
    }

    /// A worker that runs inside a piece's command does not give that piece's
    /// RELQ_BATCH to the commands of its own jobs.
    fn a_plain_job_is_of_no_batch(store) {
        store.push("job");
        let command = ["work", "--until-empty", "--exec", "sh", "-c", "echo [$RELQ_BATCH]"];
        assert_eq!(store.relq_with(&command).env("RELQ_BATCH", "outer").ok(), "[]\n");
    }

    /// B4: a batch with a larger priority runs first, even if it was submitted later.
    fn the_more_urgent_request_is_first(store) {
        submit(store, "--priority 1", "0:late:later");
        submit(store, "--priority 99", "0:soon:sooner");
        let command = "work --until-empty --concurrency 1 --exec sed s/$/./";
        assert_eq!(store.relq(command).ok(), "soon.sooner.late.later.");
    }

    /// B5: the completion of a batch pushes a job that contains the id of the batch.
    fn a_completion_pushes_a_job(store) {
        let options = "--id night --on-complete=join:{} --on-complete-queue joins";
        let ids = submit(store, options, "1:a\n1\n");
        assert_eq!(ids, ["night", "night-2"]);
        // The second batch has no piece, so it completes at once.
        assert_eq!(status(store, "night-2")["state"], "done");

        store.relq("work --until-empty --exec true").ok();

        let payloads = |jobs: serde_json::Value| {
            let jobs = jobs.as_array().unwrap().clone();
            let mut all: Vec<_> = jobs
                .iter()
                .map(|job| job["payload"].as_str().unwrap().to_owned())
                .collect();
            all.sort();
            all
        };
        let pushed = payloads(store.relq("peek -q joins --json").json());
        assert_eq!(pushed, ["join:night", "join:night-2"]);
    }

    /// B5: many batches complete at nearly the same time. Each completion job is pushed to
    /// the other queue, and runs before the worker ends.
    fn a_worker_ends_after_all_completions(store) {
        let options = "--on-complete=join --on-complete-queue joins";
        submit(store, options, &"0:a\n".repeat(40));

        let line = "work --serve default --serve joins --until-empty --concurrency 40 \
            --exec true";
        store.relq(line).ok();

        assert_eq!(store.count("joins", "finished"), 40);
    }

    /// B5: a wait for a batch of which a piece died fails, as `relq batch wait ID && next`
    /// needs it.
    fn a_wait_for_a_batch_that_failed_fails(store) {
        let pieces = r#"{"pieces": ["a", {"payload": "b", "max_attempts": 1}]}"#;
        let id = submit(store, "", pieces).remove(0);
        store.relq("work --until-empty --exec grep a").fails(3);

        let error = store.relq(&format!("batch wait {id}")).fails(1);

        assert!(error.contains(&format!("the batch {id} ended as failed")), "{error}");
    }

    /// B7: pieces that are not started are dropped, and a waiting client is notified.
    fn a_cancelled_batch_ends(store) {
        let id = submit(store, "", "0:a:b").remove(0);
        let error = store.relq(&format!("batch wait {id} --timeout 50ms")).fails(1);
        assert!(error.contains("is still sealed"), "{error}");

        let out = store.relq_with(&["batch", "cancel", &id]).ok();

        assert_eq!(out, format!("{id} cancelled\n"));
        let error = store.relq(&format!("batch wait {id}")).fails(1);
        assert!(error.contains(&format!("the batch {id} ended as cancelled")), "{error}");
        assert_eq!(status(store, &id)["dropped"], 2);
        let error = store.relq_with(&["batch", "cancel", "nobody"]).fails(1);
        assert!(error.contains("name no batch"), "{error}");
    }

    /// A waiting client is notified when the batch completes.
    fn a_wait_ends_with_the_batch(store) {
        let id = submit(store, "", "0:a").remove(0);
        let mut waiting = store.relq(&format!("batch status {id} --watch")).start();
        let mut worker = store.relq("work --exec true").start();

        let ended = waiting.end_by_itself();

        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        assert!(out.contains("state      done\n"), "{out}");
        wait_until("all is finished", || store.count("default", "finished") == 1);
        worker.stop_hard();
    }

    /// B3, B4: the limit and the priority of a running batch can be changed.
    fn a_batch_is_altered(store) {
        submit(store, "--id first --priority 9", "2:a");
        submit(store, "--id second --priority 1", "0:b");
        let error = store.relq("batch alter second").fails(2);
        assert!(error.contains("nothing to change"), "{error}");
        let line = "batch alter second --priority 10 --limit 3 --json";
        let altered = store.relq(line).json();
        assert_eq!((&altered["priority"], &altered["limit"]), (&json!(10), &json!(3)));
        store.relq("batch alter first --limit 0").ok();
        assert_eq!(status(store, "first")["limit"], json!(null));
        assert_eq!(status(store, "first")["priority"], 9);

        let command = "work --until-empty --concurrency 1 --exec cat";

        assert_eq!(store.relq(command).ok(), "ba");
    }

    fn batches_are_listed(store) {
        store.create();
        assert_eq!(store.relq("batch list --json").json(), json!([]));
        submit(store, "--id a --priority 7", "3:x:y\n0\n");
        let listed = store.relq("batch list --json").json();
        let ids: Vec<_> = listed.as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["a", "a-2"]);
        assert_eq!((&listed[0]["priority"], &listed[0]["limit"]), (&json!(7), &json!(3)));
        let running = store.relq("batch list --running").ok();
        let rows: Vec<_> = running.lines().collect();
        assert!(rows[0].starts_with("ID") && rows[1].starts_with("a "), "{running}");
        assert_eq!(rows.len(), 2);
    }

    /// A call reads a hundred batches. If none of them runs, the list goes on behind them.
    fn a_running_batch_is_listed_behind_many_that_have_ended(store) {
        // A batch without pieces completes at once.
        submit(store, "--id a", &"0\n".repeat(101));
        submit(store, "--id z", "0:x");

        let running = store.relq("batch list --running --json").json();

        let ids: Vec<_> = running.as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["z"]);
    }

    /// The payloads of a JSON line may contain colons, and its options hold for its batch
    /// alone.
    fn a_batch_is_a_line_of_json(store) {
        let lines = concat!(
            "{\"limit\":2,\"pieces\":[\"a:b\",{\"payload\":\"c\",\"headers\":{\"k\":\"v\"}}]}\n",
            "# an old line\n1:d\n",
            "{\"pieces\":[],\"id\":\"own\",\"priority\":7,\"on_complete\":\"end of {}\",",
            "\"on_complete_queue\":\"ends\",\"retention\":\"2h\"}\n",
        );
        let ids = submit(store, "--id first --priority 60", lines);
        assert_eq!(ids, ["first", "first-2", "own"]);
        let first = status(store, "first");
        assert_eq!((&first["limit"], &first["total"]), (&json!(2), &json!(2)));
        assert_eq!(first["priority"], 60);
        assert_eq!(status(store, "own")["priority"], 7);
        let end = store.relq("peek -q ends --json").json();
        assert_eq!(end[0]["payload"], "end of own");
        let script = ["work", "--until-empty", "-c", "1", "--", "sh", "-c",
            "cat; echo \" $RELQ_HEADERS\""];
        let out = store.relq_with(&script).ok();
        assert_eq!(out, "a:b {}\nc {\"k\":\"v\"}\nd {}\n");
    }

    /// R2: the headers of a piece are stored in the order of its line. Of two with the same
    /// name the last one counts, as in an import.
    fn the_headers_of_a_piece_keep_their_order(store) {
        let headers = r#"{"b":"0","z":"1","b":"2","a":"3"}"#;
        let piece = format!(r#"{{"payload":"x","headers":{headers}}}"#);
        submit(store, "", &format!(r#"{{"pieces":[{piece}]}}"#));

        let jobs = store.relq("peek --json").ok();

        assert!(jobs.contains(r#""headers":{"z":"1","b":"2","a":"3"}"#), "{jobs}");
    }

    fn requests_are_read_from_a_pipe(store) {
        let ids = store.relq("batch submit --id piped").input("0:a\n").ok();
        assert_eq!(ids, "piped\n");
        let error = store.relq("batch submit").input("{\"pieces\":[1]}").fails(2);
        assert!(error.contains("standard input: line 1: piece 1: a piece is a string"), "{error}");
        let twice = "{\"id\":\"x\",\"pieces\":[]}\n".repeat(2);
        let error = store.relq("batch submit").input(twice).fails(2);
        assert!(error.contains("two batches of the file have the id x"), "{error}");
        let queue = "{\"on_complete_queue\":\"x\",\"pieces\":[]}";
        let error = store.relq("batch submit").input(queue).fails(2);
        assert!(error.contains("batch 1: \"on_complete_queue\" is the queue"), "{error}");
        assert_eq!(store.relq("batch list --json").json().as_array().unwrap().len(), 1);
    }

    fn a_bad_file_submits_nothing(store) {
        store.create();
        let error = store.relq("batch submit --file -").input("1:a\nx:b\n").fails(2);
        assert!(error.contains("standard input: line 2:"), "{error}");
        assert_eq!(store.relq("batch list --json").json(), json!([]));
        let error = store.relq("batch submit --file gone").fails(1);
        assert!(error.contains("the file gone cannot be read"), "{error}");
        let error = store.relq("batch submit --file - --priority 100").fails(2);
        assert!(error.contains("0 to 99"), "{error}");
    }

    /// More pieces than one call takes are added by several calls.
    fn a_batch_of_several_calls_has_all_its_pieces(store) {
        let line: String = (0..2500).map(|n| format!(":{n}")).collect();
        submit(store, "--id large", &format!("0{line}\n"));
        let batch = status(store, "large");
        assert_eq!((&batch["state"], &batch["total"]), (&json!("sealed"), &json!(2500)));
    }

    fn a_batch_is_kept_as_long_as_asked(store) {
        // A batch without pieces completes at once.
        submit(store, "--id short --retention 1s", "0\n");
        submit(store, "--id long", "0\n");
        // A recovery removes the batches whose retention has ended.
        wait_until("its retention ends", || {
            store.relq("recover").ok();
            store.relq("batch status short").run().code == Some(1)
        });
        assert_eq!(status(store, "long")["state"], "done");
    }

    /// A reader that closes the output does not end the submission half way.
    fn batches_whose_ids_nobody_reads_are_all_submitted(store) {
        std::fs::write(store.file("requests"), "0:a\n0:b\n0:c\n").unwrap();
        for (options, submitted) in [("--id first", 3), ("--id second --json", 6)] {
            let line = format!("batch submit --file requests {options}");
            let ended = store.relq(&line).start_without_output().end();
            assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{options}");
            let listed = store.relq("batch list --json").json();
            assert_eq!(listed.as_array().unwrap().len(), submitted, "{options}");
        }
        for line in ["batch cancel first unknown", "batch wait first"] {
            let ended = store.relq(line).start_without_output().end();
            assert_eq!(ended.code, Some(1), "{line}: {}", ended.err);
        }
    }

    /// A signal ends the submission between two batches, and no batch stays open.
    fn a_stopped_submission_names_the_last_batch(store) {
        let mut submitting = submission_under_way(store, "");

        submitting.signal(Signal::TERM);

        let ended = submitting.end_by_itself();
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        let last = out.lines().last().unwrap();
        let words = format!("batch {}, {last}, is the last submitted", out.lines().count());
        assert!(ended.err.contains(&words), "{words}: {}", ended.err);
        assert_eq!(status(store, last)["state"], "sealed");
    }

    /// The ids of the submitted batches can be read, to submit the others.
    fn a_stopped_submission_prints_a_whole_array(store) {
        let mut submitting = submission_under_way(store, "--json");

        submitting.signal(Signal::TERM);

        let ended = submitting.end_by_itself();
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        let submitted: serde_json::Value = serde_json::from_slice(&ended.out).unwrap();
        assert_eq!(submitted[0]["id"], "first");
    }

    /// A second submission cannot add to a batch whose id is taken.
    fn a_batch_is_submitted_once(store) {
        submit(store, "--id once", "1:a");
        let error = store.relq("batch submit --file - --id once").input("1:b").fails(1);
        assert!(error.contains("there is a batch once already"), "{error}");
        assert_eq!(status(store, "once")["total"], 1);
    }

    fn an_unknown_batch_is_said_to_be(store) {
        store.create();
        for line in ["status x", "status x --watch", "wait x", "alter x --limit 1"] {
            let error = store.relq(&format!("batch {line}")).fails(1);
            assert!(error.contains("there is no batch x"), "{line}: {error}");
        }
    }
}

/// Starts a submission of more batches than it submits before the test stops it. Returns
/// when it has submitted some.
fn submission_under_way(store: &Store, options: &str) -> Running {
    store.create();
    std::fs::write(store.file("requests"), "0:a\n".repeat(30_000)).unwrap();
    let line = format!("batch submit --file requests --id first {options}");
    let submitting = store.relq(&line).start();
    wait_until("a batch is there", || {
        store.relq("batch status first").run().code == Some(0)
    });
    submitting
}

/// A wait is one blocking call on one connection. Reading the status again and again would
/// open a connection each time.
#[test]
fn a_wait_for_a_batch_opens_few_connections() {
    let mut store = Store::stream();
    let id = submit(&store, "", "0:a").remove(0);
    let connections = |store: &mut Store| {
        let stats = store.server().command(&[b"INFO", b"stats"]);
        let stats = String::from_utf8_lossy(&stats).into_owned();
        let (_, count) = stats.split_once("total_connections_received:").unwrap();
        count.lines().next().unwrap().trim().parse::<u32>().unwrap()
    };
    let before = connections(&mut store);

    store.relq(&format!("batch wait {id} --timeout 2s")).fails(1);

    // Those of the command, and those of this test.
    let opened = connections(&mut store) - before;
    assert!(opened < 8, "{opened} connections");
}

/// The store is down from then on, so that no reply ends the wait.
#[test]
fn a_wait_for_a_batch_ends_in_time_while_the_store_is_down() {
    let mut store = Store::stream();
    let id = submit(&store, "", "0:a").remove(0);
    let mut waiting = store.relq(&format!("batch wait {id} --timeout 2s")).start();
    wait_until("it waits", || {
        let clients = store.server().command(&[b"INFO", b"clients"]);
        String::from_utf8_lossy(&clients).contains("blocked_clients:1")
    });

    store.server().kill();

    let ended = waiting.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("relq: "), "{}", ended.err);
}

/// The batches that were cancelled before an error stay so, and their answers are printed.
#[test]
fn an_error_hides_no_batch_that_was_cancelled_before() {
    let mut store = Store::stream();
    for id in ["first", "broken", "last"] {
        submit(&store, &format!("--id {id}"), "0:a");
    }
    let pieces = b"{default}:batch:pieces:broken";
    store.server().command(&[b"DEL", pieces]);
    store.server().command(&[b"SET", pieces, b"another client's"]);

    let ended = store.relq("batch cancel first broken last").run();

    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let out = String::from_utf8(ended.out).unwrap();
    assert_eq!(out, "first cancelled\n", "{}", ended.err);
    assert!(ended.err.contains("WRONGTYPE"), "{}", ended.err);
    assert!(ended.err.contains("this is the answer for broken"), "{}", ended.err);
}

/// A second signal does not wait for the reply of a call.
#[test]
fn a_second_signal_ends_a_submission_without_a_reply() {
    let mut store = Store::stream();
    let mut submitting = submission_under_way(&store, "");
    store.server().command(&[b"CLIENT", b"PAUSE", b"600000", b"WRITE"]);
    wait_until("a call is under way", || {
        let clients = store.server().command(&[b"INFO", b"clients"]);
        String::from_utf8_lossy(&clients).contains("blocked_clients:1")
    });

    submitting.signal(Signal::INT);
    submitting.signal(Signal::TERM);

    let ended = submitting.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("stopped by a second signal"), "{}", ended.err);
    assert!(ended.err.contains("may be there"), "{}", ended.err);
}

#[test]
fn a_backend_without_batches_says_so() {
    let store = Store::redis();
    for line in ["batch list", "batch wait x", "demo --batches"] {
        let error = store.relq(line).fails(2);
        assert!(error.contains("zset has no batches"), "{line}: {error}");
    }
}
