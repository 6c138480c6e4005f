//! `relq work`: what the command receives, and what its exit code means.

use serde_json::json;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

on_each_store! {
    fn the_command_gets_payload_id_attempt_and_queue(store) {
        let id = &store.push("-q letters hello")[0];
        let out = store
            .relq_with(&[
                "work", "-q", "letters", "--until-empty", "--exec", "sh", "-c",
                "cat; echo \" $RELQ_ID $RELQ_ATTEMPT $RELQ_QUEUE\"",
            ])
            .ok();
        assert_eq!(out, format!("hello {id} 1 letters\n"));
        assert_eq!(store.count("letters", "finished"), 1);
    }

    /// R27: the time is that of the job, not of a job in whose command relq runs.
    fn the_command_gets_the_time_of_the_push(store) {
        store.push("job");
        let pushed = store.relq("peek --json").json()[0]["enqueued_at_ms"].to_string();
        let command = ["work", "--until-empty", "--exec", "sh", "-c",
            "echo $RELQ_ENQUEUED_AT_MS"];
        let out = store.relq_with(&command).env("RELQ_ENQUEUED_AT_MS", "1").ok();
        assert_eq!(out, format!("{pushed}\n"));
    }

    fn the_command_gets_the_headers_as_json(store) {
        store.push("-q plain job");
        store.push("-q full --header tenant=acme --header trace=a=b job");
        let headers = |queue| {
            let command = ["work", "-q", queue, "--until-empty", "--exec", "sh", "-c",
                "echo \"$RELQ_HEADERS\""];
            store.relq_with(&command).env("RELQ_HEADERS", "outer").json()
        };
        assert_eq!(headers("plain"), json!({}));
        assert_eq!(headers("full"), json!({"tenant": "acme", "trace": "a=b"}));
        let refused = store.relq("push --header =v job").fails(2);
        assert!(refused.contains("NAME=VALUE"), "{refused}");
    }

    /// R2: a script may read the headers one after the other.
    fn the_command_gets_the_headers_in_their_order(store) {
        store.push("--header z=1 --header b=2 job");
        let command = ["work", "--until-empty", "--exec", "sh", "-c",
            "echo \"$RELQ_HEADERS\""];
        assert_eq!(store.relq_with(&command).ok(), "{\"z\":\"1\",\"b\":\"2\"}\n");
    }

    fn flags_may_stand_before_and_after_the_command(store) {
        for line in [
            "work --exec cat --concurrency 8 --until-empty",
            "work --concurrency 8 --until-empty --exec cat",
            "work --concurrency 8 --until-empty --exec cat -- -u",
            "work --until-empty --exec -- cat -u",
            "work --until-empty -- cat",
            "work --concurrency 8 --until-empty -- cat -u",
            "work --exec cat -u --until-empty --queue default",
        ] {
            store.push("payload");
            assert_eq!(store.relq(line).ok(), "payload\n", "{line}");
        }
        store.push("--queue default a-b-c");
        let line = "work --until-empty --exec tr -- --delete -- -";
        assert_eq!(store.relq(line).ok(), "abc\n");
    }

    /// After two dashes each word is the command's, also one that looks like an option of
    /// relq. Short options stand before them.
    fn after_two_dashes_each_word_is_the_commands(store) {
        for (line, out) in [
            ("work --until-empty -c 1 -- echo -c 3 --exec -q x -- --until-empty", "-c 3 --exec -q x -- --until-empty\n"),
            ("work -c 1 --until-empty --exec echo -c -n", "-c -n\n"),
            ("work -c 1 --until-empty --exec echo a -- --exec b", "a --exec b\n"),
        ] {
            store.push("payload");
            assert_eq!(store.relq(line).ok(), out, "{line}");
        }
        store.push("payload");
        let words = ["work", "-c", "1", "--until-empty", "--", "printf", "<%s>", "a b", "", "*"];
        assert_eq!(store.relq_with(&words).ok(), "<a b><><*>");
    }

    /// The wait before the next attempt is drawn from zero to the first one of --retry.
    fn a_failed_job_waits_as_long_as_asked(store) {
        store.push("job");
        store.relq("work --until-empty --retry 60years -- false").fails(4);
        let stats = store.relq("stats --json").json();
        let hour = 3_600_000;
        assert!(stats["next_due_in_ms"].as_u64().unwrap() > hour, "{stats}");
        store.relq("purge --yes").ok();
        store.push("--max-attempts 5 job");
        store.relq("work --until-empty --max-wait 1m --retry 1ms..2ms -- false").fails(3);
        assert_eq!(store.relq("dead list --json").json()[0]["attempt"], 5);
    }

    /// The last error of a job whose command failed has the exit code and the end of
    /// the command's standard error.
    fn a_failed_command_leaves_its_last_words(store) {
        store.push("job --max-attempts 1");
        let ended = store
            .relq_with(&[
                "work", "--until-empty", "--exec", "sh", "-c",
                "seq 1 2000 >&2; echo the end >&2; exit 7",
            ])
            .run();
        assert_eq!(ended.code, Some(3));
        assert!(ended.err.contains("1\n2\n3\n"), "it is passed on: {}", ended.err);

        let dead = &store.relq("dead list --json").json()[0];
        let error = dead["last_error"].as_str().unwrap();
        assert!(error.starts_with("exit status: 7: "), "{error}");
        assert!(error.ends_with("2000\nthe end"), "{error}");
        assert!(error.len() <= 4096);
    }

    fn a_failed_job_is_tried_again(store) {
        store.push("job");
        let line = ["work", "--until-empty", "--max-wait", "10s", "--exec", "sh", "-c",
            "test $RELQ_ATTEMPT = 2"];
        let ended = store.relq_with(&line).run();
        assert_eq!(ended.code, Some(0));
        assert!(ended.err.contains("1 done, 1 to be tried again"), "{}", ended.err);
        assert_eq!(store.count("default", "finished"), 1);
    }

    fn a_command_that_reads_nothing_is_no_failure(store) {
        let payload = "x".repeat(1 << 20);
        store.relq("push --file -").input(payload).ok();
        store.relq("work --exec true --until-empty").ok();
        assert_eq!(store.count("default", "finished"), 1);
    }

    fn a_large_payload_arrives_whole(store) {
        let payload: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        store.relq("push --null --file -").input(without_nul(&payload)).ok();
        let worked = store.relq("work --exec cat --concurrency 1 --until-empty").run();
        assert_eq!(worked.code, Some(0));
        assert!(worked.out == without_nul(&payload));
    }

    /// R2: a NUL byte or a newline does not end a payload.
    fn a_payload_of_any_bytes_reaches_the_command(store) {
        for (separator, payload) in [("", &b"a\0b\r\xff"[..]), ("--null", b"\nc\n\nd\n")] {
            store.relq(&format!("push {separator} --file -")).input(payload).ok();
            let worked = store.relq("work --exec cat --concurrency 1 --until-empty").run();
            assert_eq!(worked.code, Some(0), "{}", worked.err);
            assert_eq!(worked.out, payload);
        }
    }

    /// A job is held for the lease that the worker asks for, and for its own one if it
    /// has one.
    fn a_lease_is_as_long_as_asked(store) {
        store.push("job -q of-worker");
        store.push("job -q of-job --lease 2h");
        for (queue, hours) in [("of-worker", 1), ("of-job", 2)] {
            let line = format!("work -q {queue} --lease 1h --exec sleep 1000");
            let mut worker = store.relq(&line).start();
            wait_until("it is leased", || store.count(queue, "leased") == 1);
            let peek = format!("peek -q {queue} --state leased --json");
            let job = &store.relq(&peek).json()[0];
            let [since, until] = ["since_ms", "until_ms"].map(|at| job[at].as_i64());
            assert_eq!(until.unwrap() - since.unwrap(), hours * 3_600_000, "{queue}");
            worker.stop_hard();
        }
    }

    fn a_command_that_leaves_a_process_behind_ends_all_the_same(store) {
        store.push("job --max-attempts 1");
        // The process that the command leaves behind holds the command's standard error
        // open.
        let script = "sleep 100 </dev/null >/dev/null & echo $! > left; exit 1";
        let line = ["work", "--until-empty", "--exec", "sh", "-c", script];
        store.relq_with(&line).fails(3);
        assert_eq!(store.count("default", "dead"), 1);
        let left = std::fs::read_to_string(store.file("left")).unwrap();
        let left = rustix::process::Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }

    fn a_command_that_is_not_there_costs_no_attempt(store) {
        store.push("job");
        let error = store.relq("work --exec no-such-command --until-empty").fails(2);
        assert!(error.contains("\"no-such-command\" is not found in PATH"), "{error}");
        let error = store.relq("work --exec ./no-such-file --until-empty").fails(2);
        assert!(error.contains("is not a program"), "{error}");
        std::fs::write(store.file("text"), "no program").unwrap();
        let error = store.relq("work --exec ./text --until-empty").fails(2);
        assert!(error.contains("is not a program that may be run"), "{error}");
        let job = &store.relq("peek --json").json()[0];
        assert_eq!(job["attempt"], 0);
    }

    fn a_command_that_cannot_be_run_costs_no_attempt(store) {
        use std::os::unix::fs::PermissionsExt;
        store.push("job");
        let program = store.file("program");
        std::fs::write(&program, "#!/no/such/interpreter\n").unwrap();
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, mode).unwrap();

        let error = store.relq("work --exec ./program --until-empty").fails(1);
        assert!(error.contains("cannot be started"), "{error}");
        let job = &store.relq("peek --json").json()[0];
        assert_eq!((&job["attempt"], &job["state"]), (&0.into(), &"ready".into()));
    }

    /// If the system is short of open files, no attempt is counted. The shell limits
    /// the worker to fewer files than its commands need at once.
    fn a_shortage_costs_no_attempt(store) {
        let lines: String = (0..100).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --max-attempts 1 --file -").input(lines).ok();
        let line = "work --concurrency 100 --until-empty --exec sleep 0.2";
        let ended = store.relq(line).with_files(40).run();
        assert_eq!(ended.code, Some(0));
        assert!(ended.err.contains("Too many open files"), "{}", ended.err);
        assert_eq!(store.count("default", "finished"), 100);
    }

    fn until_empty_waits_for_what_falls_due_in_time(store) {
        store.push("soon --delay 1s");
        store.push("late --delay 1h");
        let line = "work --exec cat --until-empty --max-wait 10s";
        let ended = store.relq(line).run();
        assert_eq!((ended.code, &ended.out[..]), (Some(4), &b"soon\n"[..]));
        assert_eq!(store.count("default", "scheduled"), 1);
        let ended = store.relq("work --exec cat --until-empty").run();
        assert_eq!((ended.code, &ended.out[..]), (Some(4), &b""[..]));
    }

    /// With --until-empty, a worker waits for a job that another worker holds, because
    /// the job may be recovered.
    fn until_empty_waits_for_the_leases_of_others(store) {
        store.push("job");
        let mut other = store.relq("work --lease 1s --exec sleep 10").start();
        wait_until("it is leased", || store.count("default", "leased") == 1);
        other.kill();
        assert_eq!(store.relq("work --exec cat --until-empty").ok(), "job\n");
    }

    fn a_paused_queue_ends_until_empty(store) {
        store.push("job");
        store.relq("pause").ok();
        let error = store.relq("work --exec cat --until-empty").fails(1);
        assert!(error.contains("the queue default is paused: `relq resume"), "{error}");
        store.relq("resume").ok();
        assert_eq!(store.relq("work --exec cat --until-empty").ok(), "job\n");
    }

    /// R17: a job that expires before it is delivered is not run. This one is due only
    /// after it has expired.
    fn an_expired_job_is_not_worked(store) {
        store.push("job --expires-in 1ms --delay 50ms");
        let line = "work --exec cat --until-empty --max-wait 1s";
        let ended = store.relq(line).run();
        assert_eq!((ended.code, &ended.out[..]), (Some(3), &b""[..]));
        assert_eq!(store.count("default", "dead"), 1);
    }
}

fn without_nul(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| byte + 1).collect()
}

/// R20: a worker runs a job that another client pushed with a plain Redis command.
#[test]
fn a_bare_payload_of_another_client_is_worked() {
    let mut store = Store::redis();
    store.server().command(&[b"LPUSH", b"emails", b"hello"]);
    assert_eq!(store.relq("work -q emails --exec cat --until-empty").ok(), "hello\n");
    assert_eq!(store.count("emails", "finished"), 1);
}

/// A command whose environment is too long starts in no attempt, so its job is dead after the
/// first one. A job of another client may have longer headers than relq accepts.
#[cfg(target_os = "linux")]
#[test]
fn a_job_whose_headers_are_too_long_for_a_command_is_dead_at_once() {
    let (file, mut stream) = (Store::sqlite(), Store::stream());
    // In JSON they have six bytes each, and a variable has 128 KiB at most.
    let controls = format!("h={}", "\u{1}".repeat(30_000));
    file.relq_with(&["push", "--header", &controls, "job"]).ok();
    let long = "x".repeat(200_000);
    stream.server().command(&[
        b"XADD",
        b"default",
        b"*",
        b"job",
        b"x",
        b"h",
        long.as_bytes(),
    ]);
    for store in [file, stream] {
        store.relq("work --until-empty -- true").fails(3);

        let dead = &store.relq("dead list --json").json()[0];
        assert_eq!(dead["attempt"], 1);
        let error = dead["last_error"].as_str().unwrap();
        assert!(error.contains("are too long for RELQ_HEADERS"), "{error}");
    }
}
