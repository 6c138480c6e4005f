//! `relq export` and `relq import`: the jobs of a queue move to another one.

use std::{collections::BTreeSet, io::Write as _};

use base64::Engine as _;
use rustix::process::Signal;
use serde_json::{Value, json};

use relq_conformance::server::Server;

use crate::{
    on_each_store,
    relq::{Relq, Store, wait_until},
};

/// The lines of an export of the queue, which is paused first.
pub(crate) fn export(store: &Store, queue: &str) -> String {
    store.relq(&format!("pause -q {queue}")).ok();
    store.relq(&format!("export -q {queue}")).ok()
}

pub(crate) fn import(store: &Store, line: &str, lines: &str) -> Relq {
    store.relq(&format!("import - {line}")).input(lines)
}

/// An export that has these jobs.
pub(crate) fn file_of(jobs: &[String]) -> String {
    let head = json!({"relq": 1, "queue": "q", "backend": "zset"});
    let end = json!({"exported": jobs.len()});
    format!("{head}\n{}\n{end}\n", jobs.join("\n"))
}

pub(crate) fn job(id: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","state":"ready","payload":"p","max_attempts":3,"priority":5{more}}}"#
    )
}

/// All jobs of an export by their ids, without what an import changes.
fn jobs(lines: &str) -> Vec<Value> {
    let mut jobs: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.get("state").is_some())
        .collect();
    for job in &mut jobs {
        let fields = job.as_object_mut().unwrap();
        for changed in ["enqueued_at_ms", "attempt", "last_error"] {
            fields.remove(changed);
        }
        // The times that are left are counted in whole milliseconds from the push.
        for time in ["due_ms", "expires_at_ms"] {
            if let Some(ms) = fields.get(time).and_then(Value::as_i64) {
                fields.insert(time.to_owned(), json!(ms / 60_000));
            }
        }
    }
    jobs.sort_by_key(|job| job["id"].as_str().unwrap().to_owned());
    jobs
}

/// Fills a queue with jobs of all options, and followers of followers.
fn fill(store: &Store) {
    store.push("--id plain one");
    store.push(
        "--id rich --header tenant=acme --priority 8 --unique k --lease 40s \
                --keep-result 2h --max-attempts 7 --expires-in 10h two",
    );
    store.push("--id later --delay 5h three");
    store.push("--id b --after plain --delay 9m four");
    store.push("--id c --after b five");
    store.push("--id d --after rich six");
    store.relq("push --file - --null").input(b"\xff\xfe\0" as &[u8]).ok();
}

/// R2: the headers of a job keep their order in a file.
#[test]
fn headers_move_in_their_order() {
    let (file, redis) = (Store::sqlite(), Store::redis());
    file.push("--id a --header z=1 --header b=2 --header y=3 x");
    let headers = r#""headers":{"z":"1","b":"2","y":"3"}"#;

    let first = export(&file, "default");
    assert_eq!(import(&redis, "", &first).ok(), "1 stored\n");
    let second = export(&redis, "default");

    assert!(first.contains(headers), "{first}");
    assert!(second.contains(headers), "{second}");
}

/// The jobs move from one store to the other and back, with their options and in their
/// order, and run there.
#[test]
fn jobs_move_between_sqlite_and_redis_and_back() {
    let (file, redis, back) = (Store::sqlite(), Store::redis(), Store::sqlite());
    fill(&file);
    let first = export(&file, "default");

    assert_eq!(import(&redis, "", &first).ok(), "7 stored\n");
    let second = export(&redis, "default");
    assert_eq!(import(&back, "", &second).ok(), "7 stored\n");
    let third = export(&back, "default");

    assert_eq!(jobs(&first).len(), 7);
    assert_eq!(jobs(&first), jobs(&second));
    assert_eq!(jobs(&first), jobs(&third));
    let head: Value = serde_json::from_str(second.lines().next().unwrap()).unwrap();
    assert_eq!(head, json!({"relq": 1, "queue": "default", "backend": "zset"}));
    assert_eq!(back.relq("show b --json").json()["after_delay_ms"], json!(540_000));
    for store in [&redis, &back] {
        store.relq("resume").ok();
        store.relq("audit").ok();
        // One job is due in hours, and b in minutes.
        store.relq("work --until-empty -- true").fails(4);
        assert_eq!(store.count("default", "finished"), 4);
    }
}

/// The lines of the jobs of an export.
fn job_lines(lines: &str) -> Vec<&str> {
    lines.lines().filter(|line| line.contains("\"state\":")).collect()
}

/// R34: jobs that moved to another backend and back are the same, byte for byte: with their
/// attempts, errors, times and states.
#[test]
fn jobs_that_come_back_are_the_same() {
    let (file, redis, back) = (Store::sqlite(), Store::redis(), Store::sqlite());
    file.push("--id dead --max-attempts 1 --header a=b --keep-result 2h x");
    file.push("--id expired --expires-in 1ms x");
    file.push("--id failed --max-attempts 9 --unique k x");
    file.relq_with(&["work", "--until-empty", "--", "sh", "-c", "exit 7"]).run();
    file.push("--id rich --priority 8 --unique u --lease 40s --max-attempts 7 x");
    file.push("--id later --delay 5h --expires-in 10h x");
    file.push("--id plain x");

    let first = export(&file, "default");
    assert_eq!(import(&redis, "", &first).ok(), "6 stored\n");
    let second = export(&redis, "default");
    assert_eq!(import(&back, "", &second).ok(), "6 stored\n");
    let third = export(&back, "default");

    assert_eq!(job_lines(&first), job_lines(&second));
    assert_eq!(first, third);
    let dead = redis.relq("show dead --json").json();
    assert_eq!((&dead["state"], &dead["attempt"]), (&json!("dead"), &json!(1)));
    assert!(dead["last_error"].as_str().unwrap().contains('7'), "{dead}");
    let failed = back.relq("show failed --json").json();
    assert_eq!(failed["attempt"], json!(1), "{failed}");
    assert_eq!(file.count("default", "dead"), 2);
    for store in [&redis, &back] {
        assert_eq!(store.count("default", "dead"), 2);
        store.relq("audit").ok();
        store.relq("dead retry dead").ok();
    }
}

/// The bytes of an entry that cannot be read, and how JSON writes them.
const JUNK: &[u8] = b"\xf5RQ\x01junk";
const JUNK_BASE64: &str = "9VJRAWp1bms=";

/// R3: no worker runs an entry that cannot be read. An import does not change that, even if
/// it makes dead jobs ready. The entry is exported as a dead job, with its bytes.
#[test]
fn an_entry_that_cannot_be_read_does_not_run_after_an_import() {
    let pushes: [(&str, &[&[u8]]); 5] = [
        ("zset", &[b"LPUSH", b"default", JUNK]),
        ("processing-list", &[b"LPUSH", b"default", JUNK]),
        ("circular", &[b"LPUSH", b"default", JUNK]),
        ("stream", &[b"XADD", b"default", b"*", b"job", JUNK]),
        ("keyspace", &[b"SET", b"item_junk", JUNK]),
    ];
    let (file, anew) = (Store::sqlite(), Store::on("circular", Server::start()));
    for (backend, push) in pushes {
        let mut store = Store::on(backend, Server::start());
        store.push("good");
        store.server().command(push);
        let lines = export(&store, "default");

        let (kept, retried) =
            (format!("-q {backend}"), format!("-q {backend}-retried"));
        let skipped = "1 stored\n1 dead ones skipped\n";
        for (store, queue, choice, report) in [
            (&file, &kept, "", "2 stored\n"),
            (&file, &retried, "--dead retry", "2 stored\n"),
            (&anew, &kept, "--dead retry", skipped),
        ] {
            let imported = import(store, &format!("{queue} {choice}"), &lines).ok();
            assert_eq!(imported, report, "{backend}: {queue} {choice}");
            let ran = store.relq(&format!("work {queue} --until-empty -- cat")).ok();
            assert_eq!(ran, "good\n", "{backend}: {queue} {choice}");
        }
        let dead = file.relq(&format!("dead list -q {backend} --json")).json();
        assert_eq!(dead[0]["payload_base64"], json!(JUNK_BASE64), "{backend}");
        let reason = dead[0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("it cannot be read: "), "{backend}: {reason}");
    }
}

/// R2, R3: a header that is not text does not vanish: the job is exported as a dead one, with
/// all bytes of its entry.
#[test]
fn a_header_that_is_no_text_is_exported() {
    let mut store = Store::stream();
    let push: [&[u8]; 7] = [b"XADD", b"default", b"*", b"job", b"x", b"trace", b"\xff"];
    store.server().command(&push);

    let lines = export(&store, "default");

    let job: Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
    assert_eq!(job["state"], json!("dead"), "{job}");
    // The text `trace` behind its length, and the value behind its own.
    let bytes = job["payload_base64"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).unwrap();
    let header = b"\0\0\0\x05trace\0\0\0\x01\xff";
    assert!(bytes.windows(header.len()).any(|part| part == header), "{job}");
}

/// The jobs of a file go to all parts of a queue, each part by calls of its own.
#[test]
fn the_parts_of_a_queue_share_an_import() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    let lines: Vec<_> = (0..100).map(|n| job(&format!("j{n}"), "")).collect();

    assert_eq!(import(&store, "", &file_of(&lines)).ok(), "100 stored\n");

    let parts = store.relq("stats --by-part --json").json();
    let ready = parts.as_array().unwrap().iter().map(|part| part["ready"].as_u64());
    let ready: Vec<_> = ready.map(Option::unwrap).collect();
    assert_eq!(ready.iter().sum::<u64>(), 100);
    assert!(ready.iter().all(|jobs| *jobs > 0), "{ready:?}");
    assert_eq!(store.relq("stats --json").json()["paused"], json!(false));
}

/// A job that no part can have is found before the queue is paused.
#[test]
fn a_job_whose_id_and_key_lead_to_two_parts_is_refused_by_the_check() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    store.push("-q created job");
    let apart = job("j0", r#","unique":"key""#);
    let lines = file_of(&[job("j1", ""), apart]);

    let error = import(&store, "", &lines).fails(1);

    assert!(error.contains("line 3") && error.contains("\"key\" to part 2"), "{error}");
    let stats = store.relq("stats --json").json();
    assert_eq!((&stats["ready"], &stats["paused"]), (&json!(0), &json!(false)));
}

/// A backend that cannot restore jobs refuses dead ones, unless it is told what becomes of
/// them.
#[test]
fn dead_jobs_are_refused_retried_or_skipped() {
    let from = Store::sqlite();
    from.push("--id dead --max-attempts 1 x");
    from.relq("work --until-empty -- false").fails(3);
    from.push("--id fine y");
    let lines = export(&from, "default");
    let store = Store::on("circular", Server::start());

    let error = import(&store, "-q a", &lines).fails(1);
    assert!(error.contains("the job dead is dead"), "{error}");
    assert!(error.contains("as a dead one on circular"), "{error}");
    assert!(error.contains("--dead retry") && error.contains("--dead skip"), "{error}");
    assert_eq!(
        import(&store, "-q b --dead skip", &lines).ok(),
        "1 stored\n1 dead ones skipped\n"
    );
    assert_eq!(import(&store, "-q c --dead retry", &lines).ok(), "2 stored\n");
    assert_eq!((store.count("c", "ready"), store.count("c", "dead")), (2, 0));
}

on_each_store! {
    fn the_queue_runs_after_an_import_and_ready_jobs_keep_their_order(store) {
        let lines: Vec<_> = (0..2500).map(|n| job(&format!("j{n}"), "")).collect();

        import(store, "", &file_of(&lines)).ok();

        assert_eq!(store.relq("stats --json").json()["paused"], json!(false));
        let listed = store.relq("list --json -n 3000").json();
        let listed: Vec<_> = listed.as_array().unwrap().iter()
            .map(|job| job["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(listed, (0..2500).map(|n| format!("j{n}")).collect::<Vec<_>>());
    }

    /// R4: an import that is killed in the middle is resumed. No job is lost or doubled.
    fn a_killed_import_is_resumed(store) {
        let count: u32 = 60_000;
        let follower = |n: u32| job(&format!("f{n}"), &format!(r#","after":"j{n}""#));
        let mut lines: Vec<_> = (0..count).map(|n| job(&format!("j{n}"), "")).collect();
        let dead = |n: u32| {
            let past = r#","attempt":3,"last_error":"no","reason":"it failed","since_ms":1"#;
            job(&format!("d{n}"), past).replace("ready", "dead")
        };
        lines.extend((0..100).map(dead));
        lines.extend((0..100).map(follower));
        std::fs::write(store.file("jobs.jsonl"), file_of(&lines)).unwrap();
        store.create();
        let mut running = store.relq("import jobs.jsonl").start();
        wait_until("some jobs are stored", || store.count("default", "ready") > 0);
        running.kill();

        let stored = store.count("default", "ready");
        assert!(stored > 0 && stored < u64::from(count), "killed too late: {stored}");
        assert_eq!(store.relq("stats --json").json()["paused"], json!(true));
        let error = store.relq("import jobs.jsonl").fails(1);
        assert!(error.contains("nothing was stored") && error.contains("--resume"), "{error}");

        let report = store.relq("import jobs.jsonl --resume --json").json();

        let [new, known] = ["stored", "known"].map(|it| report[it].as_u64().unwrap());
        assert_eq!(new + known, u64::from(count) + 200, "{report}");
        assert!(known >= stored, "{report}");
        assert_eq!(store.count("default", "ready"), u64::from(count));
        assert_eq!(store.count("default", "scheduled"), 100);
        assert_eq!(store.count("default", "dead"), 100);
        let ids: BTreeSet<_> = jobs(&store.relq("export").ok())
            .iter()
            .map(|job| job["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), lines.len());
        // The first import has paused the queue, so the second leaves it paused.
        assert_eq!(store.relq("stats --json").json()["paused"], json!(true));
    }

    /// A signal ends an import that waits for the rest of its file, and the queue is not
    /// paused.
    fn a_signal_ends_an_import_that_reads(store) {
        store.create();
        let mut running = store.relq("import -").start();
        let lines = file_of(&vec![job("a", ""); 10_000]);
        // A pipe holds less than this, so the import reads when all is written.
        let input = running.child.stdin.as_mut().unwrap();
        input.write_all(lines.as_bytes()).unwrap();

        running.signal(Signal::TERM);

        assert_eq!(running.end_by_itself().code, None, "the signal ends it");
        assert_eq!(store.relq("stats --json").json()["paused"], json!(false));
    }

    fn a_leased_job_is_exported_as_a_ready_one(store) {
        store.push("--id held x");
        let mut worker = store.relq_with(&["work", "--", "sleep", "1000"]).start();
        wait_until("the job is leased", || store.count("default", "leased") == 1);

        let lines = export(store, "default");

        assert_eq!(jobs(&lines)[0]["state"], json!("ready"));
        assert!(lines.contains(r#""attempt":0"#) && !lines.contains("until_ms"), "{lines}");
        worker.stop_hard();
        assert_eq!(import(store, "-q other", &lines).ok(), "1 stored\n");
    }

    /// An export whose reader has gone is not whole, and does not succeed.
    fn an_export_that_nobody_reads_fails(store) {
        store.push("a");
        store.relq("pause").ok();

        let ended = store.relq("export").start_without_output().end();

        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("the export was cut off"), "{}", ended.err);
    }

    /// A follower is pushed anew, with all of its options.
    fn a_follower_keeps_its_options(store) {
        store.push("--id leader x");
        store.push(
            "--id follower --after leader --delay 9m --header z=1 --header b=2 \
             --priority 8 --unique k --lease 40s --keep-result 2h --max-attempts 7 \
             --expires-in 10h y",
        );
        let lines = export(store, "default");

        assert_eq!(import(store, "-q other", &lines).ok(), "2 stored\n");

        let shown = |queue: &str| {
            let mut job = store.relq(&format!("show follower -q {queue} --json")).json();
            let fields = job.as_object_mut().unwrap();
            // Its age begins with the import.
            assert!(fields.remove("enqueued_at_ms").is_some(), "{queue}: the push");
            let expiry = fields.remove("expires_at_ms").and_then(|ms| ms.as_i64());
            (expiry.expect("it has an expiry"), job)
        };
        let ((expiry, exported), (new_expiry, imported)) = (shown("default"), shown("other"));
        assert_eq!(imported, exported);
        // The clock of the machine is asked for what is left of the time.
        let off = (new_expiry - expiry).abs();
        assert!(off < 60_000, "the expiry has moved by {off} ms");
    }

    /// R30, R34: the followers of a job with a unique key are pushed by a later call than this
    /// job, also if other jobs stand between them in the file.
    fn followers_of_several_jobs_with_unique_keys_move(store) {
        store.push("--id a a");
        store.push("--id b --after a --unique k b");
        store.push("--id c --after a --unique l c");
        store.push("--id d --after b d");
        store.push("--id e --after c e");
        store.push("--id f --after b f");
        let lines = export(store, "default");

        assert_eq!(import(store, "-q copy", &lines).ok(), "6 stored\n");

        assert_eq!(jobs(&export(store, "copy")), jobs(&lines));
        store.relq("resume -q copy").ok();
        store.relq("work -q copy --until-empty -- true").ok();
        assert_eq!(store.count("copy", "finished"), 6);
    }

    fn a_queue_that_runs_is_exported_only_live(store) {
        store.push("a");
        let error = store.relq("export").fails(1);
        assert!(error.contains("not paused") && error.contains("--live"), "{error}");
        assert_eq!(store.relq("export --live").ok().lines().count(), 3);
    }

    /// R34: a dead job stays dead, with its attempts and its error, unless it is to be
    /// retried or left out.
    fn dead_jobs_stay_dead(store) {
        store.push("--id dead --max-attempts 1 x");
        store.relq("work --until-empty -- false").fails(3);
        store.push("--id fine y");
        let lines = export(store, "default");

        assert_eq!(import(store, "-q a", &lines).ok(), "2 stored\n");
        let job = |queue: &str| store.relq(&format!("show dead -q {queue} --json")).json();
        assert_eq!(job("a"), job("default"));
        assert_eq!((store.count("a", "ready"), store.count("a", "dead")), (1, 1));
        assert_eq!(import(store, "-q b --dead skip", &lines).ok(),
                   "1 stored\n1 dead ones skipped\n");
        assert_eq!(import(store, "-q c --dead retry", &lines).ok(), "2 stored\n");
        let dead = store.relq("show dead -q c --json").json();
        assert_eq!((&dead["state"], &dead["attempt"]), (&json!("ready"), &json!(0)));
    }

    /// A dead job that becomes ready does not take the key from a job that lives, and the
    /// import says that it was not stored.
    fn a_key_that_another_job_holds_is_said(store) {
        let dead = job("dead", r#","unique":"k""#).replace("ready", "dead");
        let lines = file_of(&[job("live", r#","unique":"k""#), dead]);

        let error = import(store, "--dead retry", &lines).fails(1);

        assert!(error.contains("not stored: 1 job whose") && error.contains(": dead"), "{error}");
        assert_eq!(store.count("default", "ready"), 1);
        let again = import(store, "--dead retry --resume", &lines).run();
        assert_eq!(String::from_utf8(again.out).unwrap(), "0 stored\n1 were stored before\n");
    }

    /// Every error in the file is found before the first job is stored.
    fn a_file_that_cannot_be_imported_stores_nothing(store) {
        store.create();
        let whole = file_of(&[job("a", ""), job("b", r#","after":"a""#)]);
        let piece = file_of(&[job("a", ""), job("p", r#","batch":"B""#)]);
        let lost = file_of(&[job("a", ""), job("b", r#","after":"gone""#)]);
        let bad = file_of(&[job("a", ""), job("b", "").replace(":5", ":99")]);
        let no_end = whole.rsplit_once("{\"exported").unwrap().0.to_owned();
        let short = whole.replace("\"exported\":2", "\"exported\":3");
        let newer = whole.replace("\"relq\":1", "\"relq\":2");
        for (lines, why) in [
            (piece.as_str(), "line 3: the job is a piece of a batch"),
            (&lost, "line 3: the job b follows the job gone"),
            (&bad, "line 3: a priority is 0 to 9"),
            (&no_end, "its last line is missing"),
            (&short, "it has 2 jobs, and its last line says 3"),
            (&newer, "use the newer relq"),
            (&format!("{whole}{whole}"), "line 5: it follows the last line"),
            (&whole[whole.find('\n').unwrap() + 1..], "its first line"),
            ("", "it is empty"),
        ] {
            let error = import(store, "", lines).fails(1);
            assert!(error.contains(why), "{why}: {error}");
            let stats = store.relq("stats --json").json();
            assert_eq!((&stats["ready"], &stats["paused"]), (&json!(0), &json!(false)));
        }
        assert_eq!(import(store, "--drop-batches", &piece).ok(), "2 stored\n");
        let error = store.relq("import no-such-file").fails(1);
        assert!(error.contains("the file no-such-file cannot be read"), "{error}");
    }

    /// As other commands, an import reads what is piped into it, and takes its file by -f.
    fn an_import_names_its_file_as_other_commands(store) {
        let lines = file_of(&[job("a", "")]);
        std::fs::write(store.file("jobs.jsonl"), &lines).unwrap();

        assert_eq!(store.relq("import -q piped").input(lines).ok(), "1 stored\n");
        assert_eq!(store.relq("import -q by-option -f jobs.jsonl").ok(), "1 stored\n");
        assert_eq!(store.relq("import -q by-name jobs.jsonl").ok(), "1 stored\n");
        let twice = store.relq("import jobs.jsonl -f jobs.jsonl").fails(2);
        assert!(twice.contains("cannot be used with"), "{twice}");
        let empty = store.relq("import -q empty").fails(2);
        assert!(empty.contains("nothing to import"), "{empty}");
        let empty = store.relq("import -q empty -").fails(1);
        assert!(empty.contains("standard input cannot be used: it is empty"), "{empty}");
    }

    /// A job that becomes due during the export is in the output, whether as a scheduled job or
    /// as a ready one.
    fn a_job_that_becomes_due_meanwhile_is_exported(store) {
        // More than a pipe holds, so the export waits for its reader.
        let many = format!("{}\n", "x".repeat(1000)).repeat(300);
        store.relq("push --file -").input(many).ok();
        store.push("--id due --delay 2s job");
        store.relq("pause").ok();
        let script = "\"$0\" export | {
            for _ in $(seq 300); do
                \"$0\" recover >/dev/null
                \"$0\" show due --json | grep -q '\"state\": *\"ready\"' && break
                sleep 0.1
            done; cat; }";

        let out = store.shell(script).env("RELQ_URL", &store.url).ok();

        assert!(out.contains("\"id\":\"due\""), "the job is missing");
        assert_eq!(store.relq("show due --json").json()["state"], json!("ready"));
        assert!(out.lines().last().unwrap().contains("\"exported\":301"), "it is whole");
    }

    /// Jobs without an id get the same ids in a second import.
    fn jobs_without_ids_are_imported_once(store) {
        let bare = r#"{"id":null,"state":"ready","payload":"x","max_attempts":3,"priority":5}"#;
        let lines = file_of(&[bare.to_owned(), bare.to_owned()]);

        store.create();
        store.relq("pause -q bare").ok();
        assert_eq!(import(store, "-q bare", &lines).ok(), "2 stored\n");
        let again = import(store, "-q bare --resume", &lines).run();

        assert_eq!(String::from_utf8(again.out).unwrap(), "0 stored\n2 were stored before\n");
        assert!(again.err.contains("stays paused, as it was before"), "{}", again.err);
        assert_eq!(store.count("bare", "ready"), 2);
    }
}
