//! `relq push --keep-result`, `relq push --wait` and `relq result`: the output of a command
//! reaches the producer of its job (R29).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::{
    on_each_store,
    relq::{Ended, Running, Store, wait_until},
};

/// Starts a worker that runs `script` on each job.
fn worker(store: &Store, script: &str) -> Running {
    store.relq_with(&["work", "--concurrency", "2", "--", "sh", "-c", script]).start()
}

/// Runs `script` on each job until no job is left.
fn work(store: &Store, script: &str) -> Ended {
    store.relq_with(&["work", "--until-empty", "--", "sh", "-c", script]).run()
}

fn push_kept(store: &Store, payload: &str) -> String {
    store.push(&format!("--keep-result 1h --max-attempts 1 {payload}")).remove(0)
}

on_each_store! {
    fn a_push_waits_for_the_output_of_the_command(store) {
        store.create();
        let _worker = worker(store, "printf 'a\\377 '; cat");
        let ended = store.relq("push --keep-result 1h --wait b").run();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"a\xff b");
        assert_eq!(ended.err, "");
    }

    fn a_push_says_what_became_of_a_job_that_is_not_done(store) {
        store.create();
        let error = store.relq("push --keep-result 1h --wait=50ms a").fails(4);
        assert!(error.contains("has not ended"), "{error}");

        let _worker = worker(store, "echo why >&2; exit 7");
        let line = "push --keep-result 1h --max-attempts 1 --wait b";
        let error = store.relq(line).fails(3);
        assert!(error.contains("is dead") && error.contains("status: 7: why"), "{error}");
    }

    /// A duplicate waits for the existing job, and hears at once that this keeps nothing.
    fn a_duplicate_hears_of_the_existing_job(store) {
        store.push("--id plain a");
        store.push("--id kept --keep-result 1h b");
        work(store, "cat");
        let again = |id: &str| {
            store.relq(&format!("push --keep-result 1h --wait --json --id {id} x"))
        };
        assert_eq!(again("kept").json()["result"], "b");
        let error = again("plain").fails(1);
        assert!(error.contains("nothing is known of the job plain"), "{error}");
    }

    fn results_are_read_by_the_ids(store) {
        let [done, dead, gone] = ["done", "dead", "gone"].map(|it| push_kept(store, it));
        store.relq(&format!("cancel {gone}")).ok();
        let plain = store.push("plain").remove(0);
        work(store, "case $(cat) in done) printf x;; dead) exit 1;; esac");
        let ids = [done, dead, push_kept(store, "left"), gone, plain];

        let ended = store.relq(&format!("result --json {}", ids.join(" "))).run();
        let found: Value = serde_json::from_slice(&ended.out).unwrap();
        let states: Vec<_> =
            found.as_array().unwrap().iter().map(|it| it["state"].clone()).collect();
        assert_eq!(json!(states), json!(["done", "dead", "unfinished", "cancelled", null]));
        assert_eq!(found[0], json!({
            "id": ids[0], "state": "done", "result": "x", "result_base64": null,
            "progress": null, "progress_base64": null, "error": null,
        }));
        let error = found[1]["error"].as_str().unwrap();
        assert!(error.ends_with(": exit status: 1"), "{error}");
        assert_eq!(ended.code, Some(1), "one is not known");
        assert!(ended.err.contains("4 of 5 jobs are not done"), "{}", ended.err);

        let text = store.relq(&format!("result {}", ids[..2].join(" "))).run();
        let out = String::from_utf8(text.out).unwrap();
        assert_eq!(out, format!("{} done: x\n{} dead: {error}\n", ids[0], ids[1]));
        assert_eq!(text.code, Some(3), "one is dead");
        store.relq(&format!("result {}", ids[2])).fails(4);
        store.relq(&format!("result {}", ids[3])).fails(5);
        assert_eq!(store.relq(&format!("result --raw {}", ids[0])).ok(), "x");
    }

    fn a_result_is_waited_for(store) {
        let id = push_kept(store, "payload");
        let mut waiting = store.relq(&format!("result --wait --raw {id}")).start();
        assert_eq!(work(store, "cat").code, Some(0));
        let ended = waiting.end();
        assert_eq!((ended.code, &ended.out[..]), (Some(0), &b"payload"[..]), "{}", ended.err);
        let error = store.relq("result --wait=50ms unknown").fails(1);
        assert!(error.contains("nothing is known"), "{error}");
    }

    /// The time of --wait is that of the whole wait, and not of each job.
    fn several_jobs_are_waited_for_in_the_same_time(store) {
        let payloads = ["x"; 40].join(" ");
        let ids = store.push(&format!("--keep-result 1h {payloads}"));
        let began = Instant::now();

        let line = format!("result --wait=1s -o jsonl {}", ids.join(" "));
        let ended = store.relq(&line).run();

        let took = began.elapsed();
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        assert_eq!(out.matches("\"unfinished\"").count(), 40, "{out}");
        assert!(took < Duration::from_secs(30), "40 jobs were waited for {took:?}");
    }

    /// One call reads at most a thousand results.
    fn the_results_of_more_jobs_than_one_call_reads_are_printed(store) {
        store.push("--id job-2300 --keep-result 1h payload");
        work(store, "cat");
        let ids: Vec<_> = (0..2500).map(|number| format!("job-{number}")).collect();

        let ended = store.relq(&format!("result {}", ids.join(" "))).run();

        let out = String::from_utf8(ended.out).unwrap();
        let lines: Vec<_> = out.lines().collect();
        assert_eq!(lines.len(), ids.len(), "each id has a line");
        assert_eq!(lines[2300], "job-2300 done: payload");
        assert_eq!(lines[2499], "job-2499 not known");
        assert_eq!(ended.code, Some(1), "one is not known");
        let told = "2499 of 2500 jobs are not done";
        assert!(ended.err.contains(told), "{}", ended.err);
    }

    /// The output that is the result is printed as that of any other job.
    fn the_output_is_printed_and_is_the_result_without_a_tag(store) {
        for concurrency in ["1", "2"] {
            let id = push_kept(store, "payload");
            let line = ["work", "--until-empty", "--tag", "--concurrency", concurrency,
                "--", "cat"];
            assert_eq!(store.relq_with(&line).ok(), format!("{id}\tpayload\n"));
            assert_eq!(store.relq(&format!("result --raw {id}")).ok(), "payload");
        }
        let id = push_kept(store, "payload");
        let out = store.relq("work --until-empty --concurrency 1 -- cat").ok();
        assert_eq!(out, "payload", "one command at a time is printed unchanged");
        assert_eq!(store.relq(&format!("result --raw {id}")).ok(), "payload");
    }

    /// The result is whole although no process reads the output of the worker.
    fn the_result_is_whole_when_the_output_of_relq_is_closed(store) {
        let id = push_kept(store, "payload");
        let script = "for i in 1 2 3; do seq 1 9000; sleep 0.1; done";
        let line = ["work", "--until-empty", "--", "sh", "-c", script];
        let ended = store.relq_with(&line).start_without_output().end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let lines = store.relq(&format!("result --raw {id}")).ok();
        assert_eq!(lines.lines().count(), 3 * 9000);
    }

    /// The result of a job is whole, however slowly the output of relq is read.
    fn the_result_is_whole_when_the_output_of_relq_is_read_slowly(store) {
        let id = push_kept(store, "payload");
        // The output of the command fits into two pipes, so the command ends at once. relq
        // then still has to forward most of it, which takes seconds.
        let script = "\"$0\" work --until-empty -- seq 1 20000 | {
            for _ in $(seq 15); do sleep 0.3; head -c 4096; done; cat; }";
        let ended = store.shell(script).env("RELQ_URL", &store.url).run();
        assert_eq!(ended.out.len(), 108_894, "{}", ended.err);
        assert_eq!(store.relq(&format!("result --raw {id}")).ok().len(), 108_894);
    }

    /// The work is done, and a second attempt would repeat it.
    fn an_output_that_is_too_long_buries_the_job(store) {
        let ids = store.push("--keep-result 1h job");
        let ended = work(store, "head -c 1048577 /dev/zero");
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        let error = store.relq(&format!("result {}", ids[0])).fails(3);
        assert!(error.contains("more than the 1048576 bytes"), "{error}");
    }

    /// A signal ends the wait, and the job stays.
    fn a_signal_ends_the_wait(store) {
        store.create();
        let mut waiting = store.relq("push --keep-result 1h --wait job").start();
        crate::relq::wait_until("it is pushed", || store.count("default", "ready") == 1);
        waiting.signal(rustix::process::Signal::TERM);
        let ended = waiting.end_by_itself();
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        assert!(ended.err.contains("stopped by a signal"), "{}", ended.err);
    }
}

#[test]
fn a_backend_without_results_says_so() {
    let store = Store::on_tcp("circular");
    let error = store.relq("push --keep-result 1h job").fails(1);
    assert!(error.contains("a kept result is not an option"), "{error}");
    let error = store.relq("push --keep-result 1h --wait job").fails(2);
    assert!(error.contains("circular keeps no results"), "{error}");
    let error = store.relq("result some-id").fails(2);
    assert!(error.contains("circular keeps no results"), "{error}");
}

/// The backend of its parts keeps results and more, so the messages name the parts.
#[test]
fn a_queue_of_several_partitions_says_what_it_lacks() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=2");
    store.push("--delay 1h --id later job");
    for (line, code, why) in [
        (
            "push --keep-result 1h job",
            1,
            "a kept result in a queue of several partitions",
        ),
        (
            "push --after later job",
            1,
            "a job to follow in a queue of several partitions",
        ),
        (
            "push --keep-result 1h --wait job",
            2,
            "a queue of several partitions keeps no results",
        ),
        ("result later", 2, "a queue of several partitions keeps no results"),
        (
            "run later",
            2,
            "a queue of several partitions cannot run a job before its time",
        ),
    ] {
        let error = store.relq(line).fails(code);
        assert!(error.contains(why), "{line}: {error}");
    }
    let listed = store.relq("workers").run();
    let why = "a queue of several partitions stores no reports of workers";
    assert!(listed.err.contains(why), "{}", listed.err);
}

/// Waits until a call waits at the server.
fn wait_for_a_blocked_call(store: &mut Store) {
    wait_until("it waits", || {
        let clients = store.server().command(&[b"INFO", b"clients"]);
        String::from_utf8_lossy(&clients).contains("blocked_clients:1")
    });
}

/// Makes every call fail that reads a result, and wakes the calls that wait for one.
fn break_results(store: &mut Store) {
    store.server().command(&[b"DEL", b"{default}:results"]);
    store.server().command(&[b"SET", b"{default}:results", b"another client's"]);
    store.server().command(&[b"XADD", b"{default}:ended", b"*", b"id", b"any"]);
}

/// The random id of the job is printed nowhere else, and a second push would store a second
/// job.
#[test]
fn a_push_whose_wait_fails_tells_the_id_of_the_stored_job() {
    let mut store = Store::redis();
    store.create();
    let mut waiting = store.relq("push --keep-result 1h --wait payload").start();
    wait_for_a_blocked_call(&mut store);

    break_results(&mut store);

    let ended = waiting.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let id = store.relq("peek --json").json()[0]["id"].as_str().unwrap().to_owned();
    let stored = format!("the job {id} is stored");
    assert!(ended.err.contains("WRONGTYPE"), "{}", ended.err);
    assert!(ended.err.contains(&stored), "{}", ended.err);
    assert!(ended.err.contains(&format!("relq result --wait {id}")), "{}", ended.err);
}

/// The wait for the second job fails, and the result of the first one was read before.
#[test]
fn a_wait_that_fails_hides_no_result_that_was_read_before() {
    let mut store = Store::redis();
    let done = push_kept(&store, "payload");
    assert_eq!(work(&store, "cat").code, Some(0));
    let left = push_kept(&store, "left");
    let mut waiting = store.relq(&format!("result --wait {done} {left}")).start();
    wait_for_a_blocked_call(&mut store);

    break_results(&mut store);

    let ended = waiting.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let out = String::from_utf8(ended.out).unwrap();
    assert_eq!(out, format!("{done} done: payload\n"), "{}", ended.err);
    assert!(ended.err.contains("WRONGTYPE"), "{}", ended.err);
    let which = format!("this is the answer for {left}");
    assert!(ended.err.contains(&which), "{}", ended.err);
}

/// The store is down from then on. A call is repeated for half a minute, but not longer than
/// the wait lasts.
#[test]
fn a_wait_for_a_result_ends_in_time_while_the_store_is_down() {
    let mut store = Store::redis();
    let id = push_kept(&store, "payload");
    let mut waiting = store.relq(&format!("result --wait=2s {id}")).start();
    wait_for_a_blocked_call(&mut store);

    let down = Instant::now();
    store.server().kill();

    let ended = waiting.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let took = down.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?} after the outage: {}", ended.err);
}
