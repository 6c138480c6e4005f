//! Tests of upgrades: this version reads queues that were written in its own format and
//! in each earlier format.
//!
//! The folder `tests/fixtures` has a folder for each format of a store, with a queue of
//! each backend in it. No fixture is ever changed. A new format gets a folder of its
//! own: `cargo test --all-features --test fixtures -- --ignored` writes the fixtures of
//! today's formats that do not exist yet.
#![cfg(all(
    feature = "circular",
    feature = "keyspace",
    feature = "processing-list",
    feature = "sqlite-unbundled",
    feature = "stream",
    feature = "zset"
))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    num::NonZeroU32,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Queue, QueueName,
    ReliableQueueExt, WorkerId,
    batch::{BatchId, BatchState, NewBatch, OnComplete},
    capabilities::Capability,
    followers::{CannotFollow, MAX_FOLLOWERS},
    limits::MAX_DURATION,
    operator::{JobState, JobView, PeekRequest, Selection, StateDetail, WorkerReport},
    outcome::{Pushed, Settled},
    results::JobResult,
    schedule::ScheduleName,
    unique::UniqueKey,
};
use relq_conformance::server::Server;
use tempfile::TempDir;

/// The formats in which queues are stored on Redis, the newest last.
const REDIS: [&str; 4] = ["redis-1", "redis-2", "redis-3", "redis-4"];

/// The formats of the SQLite file, the newest last. The tests of the migrations in
/// `relq-sqlite` test the older formats.
const SQLITE: [&str; 8] = [
    "sqlite-3",
    "sqlite-4",
    "sqlite-5",
    "sqlite-6",
    "sqlite-7",
    "sqlite-8",
    "sqlite-9",
    "sqlite-10",
];

/// The formats without the time of a push (R27).
const UNTIMED: [&str; 2] = ["redis-1", "sqlite-3"];

/// The formats whose fixtures have no schedule (R28). On Redis, schedules are a key of
/// their own, which changes no format.
const UNSCHEDULED: [&str; 4] = ["redis-1", "redis-2", "sqlite-3", "sqlite-4"];

/// The formats whose fixtures have no results of jobs (R29). On Redis, results are keys of
/// their own.
const WITHOUT_RESULTS: [&str; 5] =
    ["redis-1", "redis-2", "sqlite-3", "sqlite-4", "sqlite-5"];

/// The formats whose fixtures have no followers (R30).
const WITHOUT_FOLLOWERS: [&str; 7] =
    ["redis-1", "redis-2", "redis-3", "sqlite-3", "sqlite-4", "sqlite-5", "sqlite-6"];

/// Each backend on Redis in each of its modes: the scheme of its URL, the option of its
/// URL, and the file name of its fixture.
const ON_REDIS: [(&str, &str, &str); 7] = [
    ("zset", "", "zset"),
    ("stream", "", "stream"),
    ("keyspace", "", "keyspace"),
    ("circular", "", "circular"),
    ("circular", "?finish=lrem", "circular-lrem"),
    ("processing-list", "", "processing-list"),
    ("processing-list", "?mode=shared", "processing-list-shared"),
];

/// The pages that show the marker of a queue.
const PAGES_WITH_A_MARKER: [&str; 8] = [
    "backend-circular/README.md",
    "backend-keyspace/README.md",
    "backend-processing-list/README.md",
    "backend-stream/README.md",
    "backend-zset/README.md",
    "docs/scale.md",
    "docs/stability.md",
    "queue-core/CONTRACT.md",
];

/// The length of every lease and delay in a fixture, so short that all of them have
/// ended when a test reads the fixture.
const BRIEF: Duration = Duration::from_secs(1);

const LIMIT: Duration = Duration::from_secs(20);

fn folder(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(format)
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

async fn open(url: &str) -> Arc<dyn Queue> {
    relq::connect(url, &QueueName::new("q").unwrap()).await.unwrap()
}

/// Creates a request for up to `max` jobs, with leases of length `BRIEF`.
fn ask(max: u32) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new("w").unwrap(), BRIEF).max(many(max))
}

async fn take(queue: &dyn Queue) -> Delivery {
    queue.claim_one(&ask(1)).await.unwrap().unwrap()
}

fn piece_batch(name: &str) -> BatchId {
    BatchId::new(name).unwrap()
}

fn nightly() -> ScheduleName {
    ScheduleName::new("nightly").unwrap()
}

/// Fills a queue: at least one job is in each state afterwards, and there is one record
/// of each kind that does not expire.
async fn fill(queue: &dyn Queue) {
    let can = queue.capabilities();
    for (payload, how) in [("finished", "ack"), ("dead", "bury"), ("failed", "retry")] {
        let mut job = NewJob::new(payload);
        if can.supports(Capability::Results) {
            job = job.id(JobId::new(payload).unwrap()).keep_result(MAX_DURATION);
        }
        queue.push_one(job).await.unwrap();
        let held = take(queue).await.receipt;
        if let Some(results) = queue.result_queue() {
            results.report_progress(&held, b"half").await.unwrap();
        }
        match how {
            "ack" => {
                let done = Disposition::DoneWith { result: "a result".into() };
                let settled = queue.settle_one(&held, done).await.unwrap();
                assert_eq!(settled, Settled::Applied);
            }
            "bury" => drop(queue.bury(&held, "it cannot be done").await.unwrap()),
            _ => drop(queue.retry(&held, BRIEF, "it failed").await.unwrap()),
        }
    }
    queue.push_one("held".into()).await.unwrap();
    take(queue).await;
    let key = UniqueKey::new("key").unwrap();
    let mut jobs = vec![
        NewJob::new("plain"),
        NewJob::new("with a header").header("name", "value"),
        NewJob::new("later").delay(BRIEF),
        NewJob::new("unique").unique(key),
        NewJob::new("by its last attempt").max_attempts(1.try_into().unwrap()),
    ];
    let levels = BTreeSet::from([*can.priorities.start(), *can.priorities.end()]);
    jobs.extend(
        levels
            .into_iter()
            .map(|level| NewJob::new(format!("of priority {level}")).priority(level)),
    );
    queue.push(&jobs, None).await.unwrap();
    if let Some(schedules) = queue.schedule_queue() {
        schedules.put_schedule(&nightly(), b"a definition").await.unwrap();
    }
    report(queue).await;
    if can.supports(Capability::Followers) {
        fill_with_followers(queue).await;
    }
    if can.supports(Capability::Batches) {
        let batches = queue.batch_queue().unwrap();
        let end = OnComplete::new("the end of the batch".into());
        for (name, state) in [("open", "open"), ("sealed", "sealed")] {
            let id = piece_batch(name);
            let new = NewBatch::new(id.clone()).on_complete(end.clone());
            batches.create(&new).await.unwrap();
            let piece = NewJob::new(format!("piece of {name}"));
            batches.add(&id, &[piece], None).await.unwrap();
            if state == "sealed" {
                batches.seal(&id).await.unwrap();
            }
        }
    }
}

async fn report(queue: &dyn Queue) {
    let report = WorkerReport::new(WorkerId::new("w").unwrap(), many(3));
    queue.report_worker(&report).await.unwrap();
}

/// Asserts that the workers of a fixture have been forgotten, and that a worker can report
/// to it (R33).
async fn workers_can_report(queue: &dyn Queue, what: &str) {
    let Some(inspect) = queue.inspect_queue() else { return };
    let listed = async || inspect.workers(None, many(10)).await.unwrap().workers;
    assert_eq!(listed().await, [], "{what}");
    report(queue).await;
    assert_eq!(listed().await.len(), 1, "{what}");
}

fn named(name: &str) -> NewJob {
    NewJob::new(name.to_owned()).id(JobId::new(name).unwrap())
}

/// Pushes a leader with a follower, and a job that is cancelled, with a chain of followers
/// behind it: so many that the last one is left for a recovery.
async fn fill_with_followers(queue: &dyn Queue) {
    let after =
        |name: &str, leader: &str| named(name).after(JobId::new(leader).unwrap());
    let link = |number| format!("link {number}");
    let mut jobs = vec![named("leader"), after("follower", "leader")];
    // Its id is remembered for as long as its result.
    jobs.push(named("cancelled").keep_result(MAX_DURATION));
    jobs.push(after(&link(0), "cancelled").keep_result(MAX_DURATION));
    let chain =
        (1..=MAX_FOLLOWERS).map(|number| after(&link(number), &link(number - 1)));
    jobs.extend(chain);
    queue.push(&jobs, None).await.unwrap();
    queue.cancel(&JobId::new("cancelled").unwrap()).await.unwrap();
}

/// Asserts that this version finds the followers that an older version has left.
async fn followers_are_read(queue: &dyn Queue, what: &str) {
    let scheduled = PeekRequest::new(JobState::Scheduled, many(100));
    let held = async || {
        let jobs = queue.peek(&scheduled).await.unwrap().jobs.into_iter();
        let is_held = |job: JobView| match job.detail {
            StateDetail::Following { .. } => Some(job.payload),
            _ => None,
        };
        jobs.filter_map(is_held).collect::<Vec<_>>()
    };
    let orphan = format!("link {MAX_FOLLOWERS}");
    assert_eq!(held().await, ["follower", &orphan], "{what}");
    let cancelled = JobId::new("cancelled").unwrap();
    let late = NewJob::new("too late").after(cancelled.clone());
    let refused = queue.push_one(late).await.unwrap_err();
    let is_it =
        matches!(refused, Error::CannotFollow { why: CannotFollow::NotDone, .. });
    assert!(is_it, "{what}: {refused:?}");
    let first = JobId::new("link 0").unwrap();
    let results = queue.result_queue().unwrap().read_results(&[first]).await.unwrap();
    let with_it = JobResult::Cancelled { leader: Some(cancelled) };
    assert_eq!(results, [Some(with_it)], "{what}");
    while queue.recover(many(100)).await.unwrap().more {}
    assert_eq!(held().await, ["follower"], "{what}");
}

/// Returns the payloads that this version must deliver from a fixture, each with the
/// attempt number of that delivery.
fn wanted(queue: &dyn Queue, format: &str) -> BTreeMap<String, u32> {
    let can = queue.capabilities();
    let mut fresh =
        vec!["plain", "with a header", "later", "unique", "by its last attempt"];
    if has_followers(queue, format) {
        fresh.extend(["leader", "follower"]);
    }
    let mut wanted: BTreeMap<_, _> =
        fresh.into_iter().map(|payload| (payload.to_owned(), 1)).collect();
    wanted.extend([("held".to_owned(), 2), ("failed".to_owned(), 2)]);
    for level in [can.priorities.start(), can.priorities.end()] {
        wanted.insert(format!("of priority {level}"), 1);
    }
    if can.supports(Capability::Batches) {
        for name in ["open", "sealed"] {
            wanted.insert(format!("piece of {name}"), 1);
        }
        wanted.insert("the end of the batch".to_owned(), 1);
    }
    wanted
}

fn has_followers(queue: &dyn Queue, format: &str) -> bool {
    queue.capabilities().supports(Capability::Followers)
        && !WITHOUT_FOLLOWERS.contains(&format)
}

/// Asserts that this version finds and finishes all jobs that an older version has left
/// in the queue.
async fn is_read(queue: &dyn Queue, format: &str, what: &str) {
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.dead, stats.finished), (1, 1), "{what}: {stats:?}");
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0], "{what}");
    let again = NewJob::new("again").unique(UniqueKey::new("key").unwrap());
    let refused = queue.push_one(again).await.unwrap();
    assert!(matches!(refused, Pushed::Duplicate { .. }), "{what}: {refused:?}");
    results_are_read(queue, format).await;
    workers_can_report(queue, what).await;
    if has_followers(queue, format) {
        followers_are_read(queue, what).await;
    }
    while queue.recover(many(100)).await.unwrap().more {}

    let mut found = BTreeMap::new();
    let wanted = wanted(queue, format);
    let began = Instant::now();
    while found.len() < wanted.len() {
        assert!(began.elapsed() < LIMIT, "{what}: found {found:?} of {wanted:?}");
        for one in queue.claim(&ask(100)).await.unwrap() {
            let payload = String::from_utf8(one.payload.to_vec()).unwrap();
            if payload == "with a header" {
                assert_eq!(one.headers.get("name"), Some("value"), "{what}");
            }
            if payload == "plain" {
                let is_timed = one.enqueued_at.is_some();
                assert_eq!(is_timed, !UNTIMED.contains(&format), "{what}");
            }
            assert_eq!(queue.ack(&one.receipt).await.unwrap(), Settled::Applied);
            assert_eq!(found.insert(payload, one.attempt()), None, "{what}: twice");
        }
        queue.recover(many(100)).await.unwrap();
    }
    assert_eq!(found, wanted, "{what}");

    let dead = PeekRequest::new(JobState::Dead, many(10));
    let dead = queue.peek(&dead).await.unwrap().jobs;
    assert_eq!(dead.len(), 1, "{what}: {dead:?}");
    assert_eq!(dead[0].last_error.as_deref(), Some("it cannot be done"), "{what}");
    assert_eq!(queue.redrive(&Selection::All).await.unwrap().moved, 1, "{what}");
    assert_eq!(take(queue).await.payload, "dead", "{what}");
    if let Some(batches) = queue.batch_queue() {
        let sealed = batches.batch(&piece_batch("sealed")).await.unwrap().unwrap();
        assert!(sealed.state.is_completed(), "{what}: {sealed:?}");
        let open = batches.batch(&piece_batch("open")).await.unwrap().unwrap();
        assert_eq!(open.state, BatchState::Open, "{what}: {open:?}");
    }
    if let Some(schedules) = queue.schedule_queue() {
        let found = schedules.schedules().await.unwrap().schedules;
        let found: Vec<_> = found.iter().map(|it| (&it.name, &it.definition)).collect();
        let (name, definition) = (nightly(), "a definition".into());
        let wanted = vec![(&name, &definition)];
        let is_there = !UNSCHEDULED.contains(&format);
        assert_eq!(found, if is_there { wanted } else { Vec::new() }, "{what}");
    }
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0], "{what}");
}

async fn results_are_read(queue: &dyn Queue, format: &str) {
    let Some(results) = queue.result_queue() else { return };
    let jobs = ["finished", "failed", "dead"].map(|id| JobId::new(id).unwrap());
    let mut found = results.read_results(&jobs).await.unwrap();
    if WITHOUT_RESULTS.contains(&format) {
        assert_eq!(found, [None, None, None], "{format}");
        return;
    }
    let Some(JobResult::Dead { error }) = found.pop().flatten() else {
        panic!("{format}: it is not dead")
    };
    assert!(error.contains("it cannot be done"), "{format}: {error}");
    let wanted = [
        JobResult::Done { result: "a result".into() },
        JobResult::Unfinished { progress: Some("half".into()) },
    ];
    assert_eq!(found, wanted.map(Some), "{format}");
}

fn url((backend, option, _): (&str, &str, &str), server: &Server) -> String {
    format!("{backend}+{}{option}", server.url())
}

/// Returns the content of a bulk string, which is a reply type of the Redis protocol.
fn bulk(reply: &[u8]) -> &[u8] {
    let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    &reply[start..reply.len() - 2]
}

/// Returns all keys of the server, one on each line, with their values as the command
/// DUMP returns them.
fn dumped(server: &Server) -> String {
    let keys = server.command(&[b"EVAL", b"return redis.call('KEYS', '*')", b"0"]);
    let mut keys: Vec<_> = std::str::from_utf8(&keys)
        .unwrap()
        .split("\r\n")
        .skip(2)
        .step_by(2)
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect();
    keys.sort_unstable();
    let mut lines = String::new();
    for key in keys {
        let value = server.command(&[b"DUMP", key.as_bytes()]);
        write!(lines, "{key} ").unwrap();
        for byte in bulk(&value) {
            write!(lines, "{byte:02x}").unwrap();
        }
        lines.push('\n');
    }
    lines
}

fn restore(server: &Server, lines: &str) {
    for line in lines.lines() {
        let (key, value) = line.rsplit_once(' ').unwrap();
        let value: Vec<u8> = (0..value.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&value[at..at + 2], 16).unwrap())
            .collect();
        let restored = server.command(&[b"RESTORE", key.as_bytes(), b"0", &value]);
        assert_eq!(restored, b"+OK\r\n", "{key}");
    }
}

#[tokio::test]
async fn each_format_on_redis_is_read() {
    for format in REDIS {
        for way in ON_REDIS {
            let what = format!("{format}, {}", way.2);
            let file = folder(format).join(way.2);
            let lines = fs::read_to_string(&file).unwrap();
            let server = Server::start();
            restore(&server, &lines);

            is_read(&*open(&url(way, &server)).await, format, &what).await;
            let marker = server.command(&[b"GET", b"{q}:marker"]);
            assert!(bulk(&marker).starts_with(b"relq 4 "), "{what}: not raised");
        }
    }
}

#[tokio::test]
async fn each_format_of_the_file_is_read() {
    for format in SQLITE {
        let copy = TempDir::new().unwrap();
        let file = copy.path().join("queue.db");
        fs::copy(folder(format).join("queue.db"), &file).unwrap();

        let queue = open(&format!("sqlite:{}", file.display())).await;
        is_read(&*queue, format, format).await;
    }
}

/// The pages name the formats that this version writes, so that an operator can compare
/// them with those of a store. A new format changes a constant far away from the pages.
#[tokio::test]
async fn the_pages_name_the_present_formats() {
    let page = |path: &str| fs::read_to_string(path).unwrap();
    let (server, copy) = (Server::start(), TempDir::new().unwrap());
    let file = copy.path().join("queue.db");
    for url in [url(ON_REDIS[0], &server), format!("sqlite:{}", file.display())] {
        open(&url).await.push_one("job".into()).await.unwrap();
    }

    let marker = server.command(&[b"GET", b"{q}:marker"]);
    let marker = std::str::from_utf8(bulk(&marker)).unwrap();
    let format = marker.split(' ').nth(1).unwrap();
    for path in PAGES_WITH_A_MARKER {
        let text = page(path);
        let words = text.split("`relq ").filter_map(|it| it.split_whitespace().next());
        let shown: BTreeSet<_> = words.filter(|it| it.parse::<u32>().is_ok()).collect();
        assert_eq!(shown, BTreeSet::from([format]), "{path}");
    }
    // The header of the file has the version there, the first byte being the highest.
    let header = fs::read(&file).unwrap();
    let version = u32::from_be_bytes(header[60..64].try_into().unwrap());
    let stability = page("docs/stability.md");
    assert!(stability.contains(&format!("`user_version`, {version} at present")));
}

/// Writes the fixtures that do not exist yet. The leases and delays in a fixture still
/// run when it is written, and have ended when it is read.
#[tokio::test]
#[ignore = "writes the fixtures of today's formats that do not exist yet"]
async fn write_the_fixtures_of_todays_formats() {
    let of_redis = folder(REDIS.last().unwrap());
    fs::create_dir_all(&of_redis).unwrap();
    for way in ON_REDIS {
        let file = of_redis.join(way.2);
        if !file.exists() {
            let server = Server::start();
            fill(&*open(&url(way, &server)).await).await;
            fs::write(file, dumped(&server)).unwrap();
        }
    }
    let of_sqlite = folder(SQLITE.last().unwrap());
    fs::create_dir_all(&of_sqlite).unwrap();
    let file = of_sqlite.join("queue.db");
    if !file.exists() {
        let queue = open(&format!("sqlite:{}", file.display())).await;
        fill(&*queue).await;
        drop(queue);
        // Wait until SQLite's log file is gone: the last handle to the queue writes the
        // log back to the file when it is closed, and removes the log.
        let (log, began) = (of_sqlite.join("queue.db-wal"), Instant::now());
        while log.exists() {
            assert!(began.elapsed() < LIMIT, "{log:?} is still there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// R16: workers of earlier versions could bury a job that kept its unique key. Its redrive
/// does not take the job for its own duplicate, and its purge frees the key.
#[tokio::test]
async fn a_dead_job_that_kept_its_key_is_redriven_and_purged() {
    for (scheme, option, name) in ON_REDIS {
        let server = Server::start();
        let queue = open(&format!("{scheme}+{}{option}", server.url())).await;
        let job = || NewJob::new("job").unique(UniqueKey::new("k").unwrap());
        queue.push_one(job()).await.unwrap();
        bury_with_its_key(&server, &*queue).await;

        let redriven = queue.redrive(&Selection::All).await.unwrap();

        assert_eq!((redriven.moved, redriven.duplicates), (1, 0), "{name}");
        bury_with_its_key(&server, &*queue).await;
        assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 1, "{name}");

        let pushed = queue.push_one(job()).await.unwrap();
        assert!(matches!(pushed, Pushed::Stored(_)), "{name}: {pushed:?}");
    }
}

/// Buries the next job as a worker did that left its key `k` behind.
async fn bury_with_its_key(server: &Server, queue: &dyn Queue) {
    let held = take(queue).await;
    queue.bury(&held.receipt, "no").await.unwrap();
    let holder = format!("0 {}", held.job());
    server.command(&[b"HSET", b"{q}:unique", b"k", holder.as_bytes()]);
}
