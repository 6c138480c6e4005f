//! Bad input leads to a clear error and the right exit code, and loses no job.

use std::{io::Write, net::TcpListener};

use crate::{on_each_store, relq::Store};

/// Runs the program on each command line. Asserts that it exits with `code`, and that
/// its error contains the text that `lines` gives for that command line.
#[track_caller]
fn refuses(store: &Store, code: i32, lines: &[(&str, &str)]) {
    for (line, words) in lines {
        let ended = store.relq(line).run();
        assert_eq!(ended.code, Some(code), "{line}: {}", ended.err);
        assert!(ended.err.contains(words), "{line}: {}", ended.err);
        assert!(!ended.err.contains("panicked"), "{line}: {}", ended.err);
    }
}

/// Command lines that are refused, and words of the reason.
const WITHOUT_SENSE: &[(&str, &str)] = &[
    ("", "Usage"),
    ("psuh a", "similar subcommand exists: 'push'"),
    ("push", "nothing to push"),
    ("push a --file b", "cannot be used with"),
    ("push a --null", "--file"),
    ("push --id x a b", "--id names one job"),
    ("push a --unique k --unique-payload", "cannot be used with"),
    ("push a --wait", "--keep-result"),
    ("push a b --keep-result 1h --wait", "--wait waits for one job"),
    ("push a --keep-result 1h --wait=0s", "at least 1ms"),
    ("push --file b --keep-result 1h --wait", "cannot be used with"),
    ("push a --keep-result 0s", "at least 1ms"),
    ("push a --delay 5", "a duration is a number with its unit"),
    ("push a --delay -5s", "a duration is a number with its unit"),
    ("push a --delay --json", "a duration is a number with its unit"),
    ("push a --delay 99999999999999999999y", "longer than a hundred years"),
    ("push a --lease 0s", "at least 1ms"),
    ("push a --expires-in never", "a duration is a number with its unit"),
    ("push a --priority 10", "from 0 to 9"),
    ("push a --max-attempts 0", "a whole number from 1 to 65535"),
    ("push a --max-attempts -1", "a whole number from 1 to 65535"),
    ("push a --at soon", "a time is given as 2026-12-24T18:00:00Z"),
    ("push a --at 18:00 --delay 5s", "cannot be used with"),
    ("push a --at 18:00 --after b", "cannot be used with"),
    ("push a --header a", "a header is given as NAME=VALUE"),
    ("work", "no command is given"),
    ("work --", "as in `relq work -- CMD ARG…`"),
    ("work --exec", "no command is given"),
    ("work --exec cat --concurrency 0", "a whole number from 1 to 4294967295"),
    ("work -c -1 -- cat", "a whole number from 1 to 4294967295"),
    ("work --retry 10s..5s -- cat", "a delay above its cap"),
    ("work --retry 5 -- cat", "a duration is a number with its unit"),
    ("work --grace soon -- cat", "a duration is a number with its unit"),
    ("work -q a -q b -- cat", "has --serve NAME for each of them"),
    ("work -- no-such-program", "is not found in PATH; no job was claimed"),
    ("work --exec cat --concurrency many", "a whole number from 1 to 4294967295"),
    ("work --exec cat --lease 0s", "at least 1ms"),
    ("work --exec cat --concurency 8", "unexpected argument '--concurency'"),
    ("work --exec cat --max-wait 1s", "--until-empty"),
    ("peek --state gone", "possible values"),
    ("peek --limit 0", "a whole number from 1 to 4294967295"),
    ("peek -n -5", "a whole number from 1 to 4294967295"),
    ("peek -o yaml", "possible values: table, json, jsonl"),
    ("peek -o json --json", "cannot be used with"),
    ("dead list -n x", "a whole number from 1 to 4294967295"),
    ("dead list --newer-than x", "a duration is a number with its unit"),
    ("cron next x -n 0", "a whole number from 1 to 4294967295"),
    ("batch alter x --limit -1", "a whole number from 0, for no limit"),
    ("batch alter x", "nothing to change"),
    ("batch submit", "nothing to submit"),
    ("import", "nothing to import"),
    ("push x --header k=1 --header l=1 --header k=2", "two headers have the name k"),
    ("completion", "<SHELL>"),
    ("completion csh", "possible values: bash"),
    ("man no-such", "there is no command `relq no-such`"),
    ("man dead no-such", "there is no command `relq dead no-such`"),
    ("dead", "Usage"),
    ("dead redrive", "--all"),
    ("cancel", "<ID>"),
    ("result", "<ID>"),
    ("result a b --raw", "--raw prints one result"),
    ("result a --raw --json", "cannot be used with"),
    ("result a --raw -o jsonl", "cannot be used with"),
    ("purge", "--yes"),
    ("demo --jobs 0", "a whole number from 1 to 4294967295"),
    ("demo --queues 300", "a whole number from 1 to 255"),
    ("demo --workers 0", "a whole number from 1 to 65535"),
    ("demo --url sqlite::memory:", "share no memory"),
    ("stats -q a{b}", "must not hold braces"),
];

#[test]
fn a_command_line_without_sense_is_refused() {
    let store = Store::sqlite();
    refuses(&store, 2, WITHOUT_SENSE);
    let error = store.relq_with(&["stats", "-q", ""]).fails(2);
    assert!(error.contains("must not be empty"), "{error}");
}

#[test]
fn a_url_that_is_no_good_says_why() {
    let store = Store::sqlite();
    refuses(
        &store,
        2,
        &[
            ("stats --url sqllite:x.db", "did you mean sqlite?"),
            ("stats --url zset+reddis://h", "did you mean zset+redis?"),
            ("stats --url postgres://h/db", "known: sqlite"),
            ("stats --url postgres://h/db", "keyspace+redis"),
            ("stats --url jobs.db", "did you mean sqlite:jobs.db?"),
            ("stats --url sqlite:", "names no file"),
            ("stats --url sqlite:x.db?synchronous=of", "full or normal"),
            ("stats --url redis://127.0.0.1/zero", "database number"),
            ("stats --url redis://", "not usable"),
        ],
    );
    let error = store.relq("stats --url redsi://me:s3cret@h/0").fails(2);
    assert!(error.contains("redsi://***@h/0") && !error.contains("s3cret"), "{error}");
    store.relq("push job").no_env("RELQ_URL").ok();
    assert!(store.file("relq.db").exists(), "the default is a file in the folder");
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_scheme_that_is_not_compiled_in_names_its_feature() {
    let error = Store::sqlite().relq("stats --url rediss://localhost").fails(2);
    assert!(error.contains("--features tls"), "{error}");
}

/// The commands that relq starts by itself are not offered.
#[test]
fn a_missing_command_is_answered_with_those_of_the_help() {
    let error = Store::sqlite().relq("").fails(2);
    assert!(error.contains("push, work, stats"), "{error}");
    assert!(!error.contains("lead-group") && !error.contains("demo-worker"), "{error}");
}

/// A device, or a file without newlines, fills neither the memory nor the disk.
#[cfg(target_os = "linux")]
#[test]
fn input_without_an_end_is_refused() {
    let store = Store::sqlite();
    let no_export = "cannot be used: its first line is not that of an export";
    let no_batch = ": line 1: it is neither a JSON object nor limit:piece";
    for (line, code, input, words) in [
        ("\"$0\" import /dev/zero", 1, "the file /dev/zero ", no_export),
        ("yes | \"$0\" import", 1, "standard input ", no_export),
        ("\"$0\" batch submit -f /dev/zero", 2, "the file /dev/zero", no_batch),
        ("yes | \"$0\" batch submit", 2, "standard input", no_batch),
    ] {
        // 1 GB of memory, and some 10 MB for each file.
        let limits = "ulimit -v 1000000; ulimit -f 20000";
        let shell = store.shell(&format!("{limits}; {line}"));
        let error = shell.env("RELQ_URL", &store.url).fails(code);
        assert!(error.contains(&format!("{input}{words}")), "{line}: {error}");
    }
}

/// A folder that was removed while a shell is in it.
#[test]
fn a_current_folder_that_is_gone_is_said_to_be() {
    let store = Store::sqlite();
    let line = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" push job";
    let ended = store.shell(line).run();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("the current folder does not exist"), "{}", ended.err);
}

/// Another program listens where Redis should be.
#[test]
fn a_program_that_is_not_redis_is_said_to_be_another() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
            // Until the client closes: its own bytes are not read otherwise, and a reset
            // would overtake the answer.
            let _ = std::io::copy(&mut client, &mut std::io::sink());
        }
    });
    let error = Store::sqlite().relq_with(&["stats", "--url", &url]).fails(1);
    assert!(error.contains("does not answer as Redis does"), "{error}");
}

/// A local time in a zone that this machine does not know would be another time.
#[test]
fn a_local_time_needs_a_known_zone() {
    let store = Store::sqlite();
    let push = |time| {
        store.relq(&format!("push --at {time} job")).env("TZ", "Europe/Atlantis")
    };
    for local in ["18:00", "2999-01-01", "2999-01-01T18:00"] {
        let error = push(local).fails(2);
        assert!(error.contains("Europe/Atlantis"), "{error}");
    }
    push("2026-01-01T18:00:00Z").ok();
    push("2026-01-01T18:00[Europe/Berlin]").ok();
    assert_eq!(store.count("default", "ready"), 2);
}

on_each_store! {
    fn what_the_store_refuses_is_an_error_and_not_a_panic(store) {
        refuses(store, 1, &[
            ("push --file no-such-file", "the file no-such-file cannot be read"),
            ("push --file .", "nothing was stored"),
            ("cancel no-such-job", "no scheduled, ready or leased"),
            ("result no-such-job", "nothing is known of the job no-such-job"),
            ("dead redrive no-such-job", "name no dead job"),
        ]);
        refuses(store, 2, &[
            ("push a --delay 101years", "a hundred years"),
            ("push a --expires-in 101years", "a hundred years"),
            ("push a --lease 101years", "a hundred years"),
            ("push a --keep-result 99999999999years", "a hundred years"),
            ("work --exec cat --lease 101years", "a hundred years"),
        ]);
        assert_eq!(store.count("default", "ready"), 0);
    }
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    let mut store = Store::redis();
    store.server().command(&[b"CONFIG", b"SET", b"requirepass", b"s3cret"]);
    let error = store.relq("stats").fails(1);
    assert!(error.contains("password") || error.contains("denied"), "{error}");
    let socket = store.server().socket();
    let url = |options: &str| format!("unix://{}?{options}", socket.display());

    let wrong = url("pass=wr0ng");
    let error = store.relq_with(&["--url", &wrong, "stats"]).fails(1);
    assert!(error.contains("denied") && !error.contains("wr0ng"), "{error}");
    let missing = url("pass=s3cret&db=99");
    let error = store.relq_with(&["--url", &missing, "stats"]).fails(1);
    assert!(error.contains("out of range") && !error.contains("s3cret"), "{error}");
    let right = url("pass=s3cret&db=3");
    store.relq_with(&["--url", &right, "push", "a"]).ok();

    store.server().kill();
    let error = store.relq_with(&["--url", &right, "push", "a"]).fails(1);
    assert!(error.contains("check that the store of --url is up"), "{error}");
}

#[test]
fn a_key_of_another_type_in_the_way_is_left_alone() {
    let mut store = Store::redis();
    store.server().command(&[b"SADD", b"taken", b"member"]);
    for line in ["push a", "stats", "peek", "work --exec cat --until-empty"] {
        let error = store.relq(&format!("-q taken {line}")).fails(1);
        assert!(
            error.contains("WRONGTYPE") || error.contains("type"),
            "{line}: {error}"
        );
    }
    assert_eq!(store.server().command(&[b"SCARD", b"taken"]), b":1\r\n");
}

#[test]
fn a_file_that_is_not_relqs_is_left_alone() {
    let store = Store::sqlite();
    std::fs::write(store.file("notes.txt"), "these are no jobs\n".repeat(100)).unwrap();
    let error = store.relq("push a --url sqlite:notes.txt").fails(1);
    assert!(error.contains("cannot be used"), "{error}");
    let notes = std::fs::read_to_string(store.file("notes.txt")).unwrap();
    assert_eq!(notes, "these are no jobs\n".repeat(100));
    let error = store.relq("push a --url sqlite:no/such/folder.db").fails(1);
    assert!(error.contains("sqlite connect"), "{error}");
}

#[test]
fn a_server_that_may_evict_jobs_is_warned_of() {
    let store = Store::redis_with(&["--maxmemory-policy", "allkeys-lru"]);
    let ended = store.relq("push a").run();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("noeviction"), "{}", ended.err);

    let ended = Store::redis().relq("push a").run();
    assert!(!ended.err.contains("noeviction"), "{}", ended.err);
}

/// A worker says at its start what a crash of the server would lose. A push does not.
#[test]
fn a_worker_on_a_server_without_an_append_only_file_is_warned() {
    let words = "the server has no append-only file";
    let store = Store::redis_with(&["--appendonly", "no"]);
    let pushed = store.relq("push a").run();
    assert!(!pushed.err.contains(words), "{}", pushed.err);
    let worked = store.relq("work --until-empty -- true").run();
    assert_eq!(worked.code, Some(0), "{}", worked.err);
    assert_eq!(worked.err.matches(words).count(), 1, "{}", worked.err);
    assert!(!worked.err.contains("the clock of this machine"), "{}", worked.err);

    let store = Store::redis_with(&["--appendonly", "yes"]);
    store.push("a");
    let worked = store.relq("work --until-empty -- true").run();
    assert!(!worked.err.contains("warning"), "{}", worked.err);
}
